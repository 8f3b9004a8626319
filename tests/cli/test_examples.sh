#!/bin/bash
# Every example of a page (`$ command` and what it prints) is what the program prints today; and the check sees what is not.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
source tests/cli/examples.sh

refuses() { # WHY, text of a page
    printf '%s\n' "$2" > "$scratch/page.md"
    ( check_examples "$scratch/page.md" ) > "$scratch/said" 2>&1 && fail "takes: $1"
    return 0
}
# shellcheck disable=SC2016 # the commands are for later
{
    refuses 'a line that is not printed' $'    $ printf "one\\ntwo\\n"\n    one\n    three'
    refuses 'lines in another order' $'    $ printf "one\\ntwo\\n"\n    two\n    one'
    refuses 'a line left out without "..."' $'    $ printf "one\\ntwo\\nthree\\n"\n    one\n    three'
    refuses 'lines left out at the end' $'    $ printf "one\\ntwo\\n"\n    one'
    refuses 'another beginning' $'    $ echo one two\n    two ...'
    refuses 'a page without an example' 'nothing'
    printf '%s\n' '    $ printf "one two\nthree\nfour\n"' '    one ...' '    ...' '    four' '' 'text' > "$scratch/page.md"
    check_examples "$scratch/page.md"
}

pages=$(git ls-files '*.md' 2> /dev/null | xargs grep -l '^ *\$ ' || true)
[[ -n "$pages" ]] || pages=$(grep -rl --include='*.md' '^ *\$ ' README.md reference datasets kernels verify notebooks_export)
for page in README.md verify/study/README.md verify/record/README.md verify/bench/README.md verify/reproduce/README.md verify/certify/README.md \
    kernels/runner/python/README.md; do
    [[ " ${pages//$'\n'/ } " == *" $page "* ]] || fail "$page is not among the pages with examples: ${pages//$'\n'/ }"
done
for page in $pages; do check_examples "$page"; done
echo "pages with examples: $(wc -w <<< "$pages")"
