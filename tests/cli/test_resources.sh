#!/bin/bash
# make/resources.sh beside its record, with a compiler of this test's own: what is in the record as it is now is taken from
# there, what has changed is compiled, and one source in 16 is compiled anyway and must be as recorded.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
resources=$PWD/make/resources.sh
cd "$scratch" || exit 3
mkdir -p bin kernels/any
cat > bin/nvcc <<'END'
#!/bin/bash
[[ $1 != --version ]] || { echo "Cuda compilation tools, release 1.0, V1.0.${PATCH:-1}"; exit; }
for word in "$@"; do [[ $word == *.cu ]] && source=$word; done
if [[ " $* " == *' -E '* ]]; then
    echo '# 1 "/usr/include/theirs.h"'; echo "int theirs_$RANDOM;" # no part of what is ours
    echo "# 1 \"$source\""; cat "$source"
elif [[ " $* " == *' -c '* ]]; then
    echo "void exit(int); void f(void); void f(void) { $(sed -n 's/^calls //p' "$source") }" | gcc -x c -c - -o "${!#}"
else
    echo "$source" >> compiled; cp "$source" "${!#}"
fi
END
cat > bin/ptxas <<'END'
#!/bin/bash
exec >&2
printf "Compiling entry function '%s'\n    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n" "$(sed -n 's/entry //p' "${@: -3:1}")"
printf 'Used %d registers, 0 bytes smem\n' "$(sed -n 's/registers //p' "${@: -3:1}")"
END
chmod +x bin/nvcc bin/ptxas
git init -q . && for i in {50..79}; do printf 'entry kernel_%d\nregisters %d\n' "$i" "$i" > kernels/any/${i}_x.cu; done && git add kernels || fail "no git"
run() { : > compiled; wants "$1" "$2" env AT_ARCHS='sm_90a sm_80' AT_RECORD="${3:-}" "$resources" "$scratch/bin/nvcc" out.tsv -O3; }
times() { [[ $(sort -u compiled | wc -l) == "$1" ]] || { cat compiled; fail "compiled: $(sort -u compiled | wc -l) sources, wanted $1"; }; }

run 0 '60 kernels of 30 sources on 2 architectures, 0 spill; 30 sources compiled'
times 30
mv out.tsv record.tsv
looked_at=$(awk -F '\t' '$9 ~ /0$/ { print $1 }' record.tsv | sort -u) n=$(grep -c . <<< "$looked_at")
[[ $n -ge 1 && $n -le 10 ]] || fail "$n of 30 sources are compiled anyway"
run 0 "$n sources compiled, the others are in record.tsv as they are" record.tsv
times "$n"; same out.tsv record.tsv
# What has changed is compiled, on both architectures; another release of the compiler has compiled nothing yet.
other=$(cut -f1 record.tsv | grep -vxF "$looked_at" | tail -n 1)
sed -i 's/^registers .*/registers 99/' "$other"
run 0 'sources compiled' record.tsv
grep -qxF "$other" compiled || fail "$other has changed and was not compiled"
[[ $(awk -F '\t' -v source="$other" '$1 == source && $4 == 99' out.tsv | wc -l) == 2 ]] || fail "the rows of what has changed"
# A host that would run a __device__ function is refused, as `make cuda` refuses it.
echo 'calls exit(1);' >> "$other"
run 123 "$other: a __device__ function is compiled for the host" record.tsv
git checkout -q -- kernels
PATCH=2 run 0 '30 sources compiled' record.tsv
# A source that the record has on one architecture alone is not in it.
grep -vP "^\Q$other\E\t.*\tsm_80\t" record.tsv > half.tsv
run 0 "$((n + 1)) sources compiled" half.tsv
# A record that is not what the compiler gives is seen at a source that is compiled anyway.
awk -F '\t' -v OFS='\t' -v source="$(head -n 1 <<< "$looked_at")" '$1 == source { $4 += 1 } { print }' record.tsv > wrong.tsv
run 123 'not as it is in wrong.tsv' wrong.tsv
run 1 'not there' no.tsv
