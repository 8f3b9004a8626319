# The command of `make mutate`, without a look at what is built.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# mutate_command mutate N=3 ...: what make would run, for bash. BUILD as make has it: a parse alone writes the flags down, and
# others would find the tree built with other ones.
mutate_command() {
    local cc cxx
    cc=$(sed "s/ -std=.*//" "$BUILD/flags") cxx=$(sed "s/ -std=.*//" build/simt/flags) # the compilers that everything was built with
    make --no-print-directory -n CC="$cc" CXX="$cxx" DEPS=0 BUILD="${BUILD#"$PWD"/}" "$@" 2> /dev/null | sed -n "/^N='/,\$p"
}
