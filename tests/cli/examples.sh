# Checks the examples of a page: a block of code with a line `$ command` shows what that command prints.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# In what is shown, a line `...` stands for any number of lines, and a line that ends in ` ...` for all lines that begin so.
# Everything else must be what the command prints, to the letter, from its first line to its last.

# examples_of PAGE FOLDER: writes FOLDER/N.command and FOLDER/N.shown for each example of the page.
examples_of() {
    awk -v folder="$2" '
        function finish() { if (shown != "") close(shown); shown = "" }
        /^```/ { fenced = !fenced; finish(); next }
        { inside = fenced || /^    / || (/^$/ && shown != "") }
        !inside { finish(); next }
        { line = $0; if (!fenced) sub(/^    /, "", line) }
        line ~ /^\$ / {
            finish(); n++
            shown = folder "/" n ".shown"; command = folder "/" n ".command"
            printf "" > shown
            line = substr(line, 3)
            while (line ~ /\\$/) { sub(/\\$/, "", line); getline more; sub(/^ */, "", more); line = line more }
            print line > command; close(command); next
        }
        shown != "" { print line > shown }
        END { finish() }' "$1"
}

# shown_is_printed SHOWN PRINTED: whether the output holds the lines shown; else says the first that it lacks.
shown_is_printed() {
    awk '
        NR == FNR { shown[++n] = $0; next }
        { printed[++m] = $0 }
        function fits(s, p) {
            if (s ~ / \.\.\.$/) return index(p, substr(s, 1, length(s) - 4)) == 1
            return s == p
        }
        END {
            while (n > 0 && shown[n] == "") n-- # the blank line behind a block
            while (m > 0 && printed[m] == "") m--
            at = 1
            for (i = 1; i <= n; i++) {
                if (shown[i] == "...") { any = 1; continue }
                for (k = at; any && k <= m && !fits(shown[i], printed[k]); k++);
                if (k < at) k = at
                if (k > m || !fits(shown[i], printed[k])) {
                    print "shown, but not printed here: " shown[i]
                    print (at <= m ? "printed here: " printed[at] : "printed here: nothing more")
                    exit 1
                }
                at = k + 1; k = 0; any = 0
            }
            if (!any && at <= m) { print "printed, but neither shown nor passed over by \"...\": " printed[at]; exit 1 }
        }' "$1" "$2"
}

# check_examples PAGE: runs each command of the page in a folder that has the project's own as links. `make demo` is left to
# test_demo.sh, which runs it anyway.
check_examples() {
    local page=$1 folder command name
    folder=$(mktemp -d "$scratch/examples.XXXX")
    examples_of "$page" "$folder"
    ln -s "$PWD/datasets" "$PWD/kernels" "$PWD/tests" "$folder/"
    for command in "$folder"/*.command; do
        [[ -e "$command" ]] || fail "$page has no example"
        name=${command%.command}
        [[ $(< "$command") == make\ * ]] && continue
        (cd "$folder" && PATH=$BUILD:$PATH bash "$command") > "$name.printed" 2> /dev/null < /dev/null
        shown_is_printed "$name.shown" "$name.printed" > "$name.why" || { cat "$name.why"; fail "$page: $(< "$command")"; }
    done
}
