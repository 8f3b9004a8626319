#!/bin/bash
# What make/cluster says to GitHub and to Kubernetes, each of its commands run by a shell, gives the bytes of one process: the
# program is the same, the cases fewer. The files are YAML of the form that each wants, as far as a parser can tell.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import yaml' 2> /dev/null || { echo "no python3-yaml to read the files with"; exit 77; }
mkdir -p "$scratch/bin" "$scratch/build" "$scratch/shared"
ln -s "$PWD/make" "$scratch/make"
cat > "$scratch/bin/attest" << FEWER
#!/bin/bash
args=(); for word in "\$@"; do [[ "\$word" != '*' ]] || word='smoke:*uclip*'; args+=("\$word"); done
exec "$BUILD/attest" "\${args[@]}"
FEWER
chmod +x "$scratch/bin/attest"
ln -s "$scratch/bin/attest" "$scratch/build/attest"; ln -s "$PWD/make/cluster/attest-merge.sh" "$scratch/bin/"
cat > "$scratch/say.py" << 'PYTHON'
import sys, yaml
matrix = yaml.safe_load(open("make/cluster/attest-matrix.yml"))
jobs = list(yaml.safe_load_all(open("make/cluster/attest-job.yaml")))
what = sys.argv[1]
if what in ("shard", "merge"):
    job = matrix["jobs"][what]
    runs = [s["run"] for s in job["steps"] if "run" in s]
    assert all(("run" in s) != ("uses" in s) for s in job["steps"]) and job["runs-on"] and runs[0].startswith("make")
    if what == "shard":
        assert job["strategy"]["matrix"]["i"] == list(range(1, 9)) and matrix["jobs"]["merge"]["needs"] == "shard"
    print("\n".join(r.replace("${{ matrix.i }}", sys.argv[2] if len(sys.argv) > 2 else "") for r in runs[1:]))
else:
    job = jobs[0 if what == "pod" else 1]
    assert job["apiVersion"] == "batch/v1" and job["kind"] == "Job"
    pod = job["spec"]["template"]["spec"]
    assert pod["restartPolicy"] in ("Never", "OnFailure") and len(pod["containers"]) == 1
    if what == "pod":
        assert job["spec"]["completionMode"] == "Indexed" and job["spec"]["completions"] == 8
    volumes = {v["name"] for v in pod["volumes"]}
    assert {m["name"] for m in pod["containers"][0]["volumeMounts"]} <= volumes
    assert pod["containers"][0]["command"] == ["/bin/bash", "-c"]
    print(pod["containers"][0]["args"][0].replace("/shared", sys.argv[2]))
PYTHON
say() { /usr/bin/python3 "$scratch/say.py" "$@" || fail "$*: not as wanted"; }
export PATH=$scratch/bin:$PATH OPENBLAS_CORETYPE=HASWELL
"$scratch/bin/attest" verify --cases '*' --quiet --out "$scratch/one.h5" > "$scratch/log" 2>&1; [[ $? == [01] ]] || fail "one process"

for i in 1 2 3 4 5 6 7 8; do
    text=$(say shard $i) || exit 1
    (cd "$scratch" && bash -ec "$text") > "$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; fail "GitHub, shard $i"; }
    text=$(say pod "$scratch/shared") || exit 1
    JOB_COMPLETION_INDEX=$((i - 1)) bash -c "$text" > "$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; fail "Kubernetes, shard $i"; }
done
text=$(say merge) || exit 1
(cd "$scratch" && bash -ec "$text") > "$scratch/log" 2>&1 # of these few cases there is a variant that none judges: 1, with --strict
[[ $? == 1 ]] && grep -q 'never judged' "$scratch/log" || { tail -n 5 "$scratch/log"; fail "GitHub, merge"; }
same "$scratch/one.h5" "$scratch/run.h5"
text=$(say joined "$scratch/shared") || exit 1
bash -c "$text" > "$scratch/log" 2>&1 || { tail -n 5 "$scratch/log"; fail "Kubernetes, merge"; }
same "$scratch/one.h5" "$scratch/shared/run.h5"
# What attest could not do is no shard that is complete.
text=$(say pod /no/such/folder) || exit 1
JOB_COMPLETION_INDEX=0 bash -c "$text" > "$scratch/log" 2>&1 && fail "a shard without a place passes for complete"
echo "ok: the commands of both files give the bytes of one process"
