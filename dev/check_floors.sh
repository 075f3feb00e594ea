#!/usr/bin/env bash
# dev/check_floors.sh - every file of src/ compiles alone, sees nothing but its floor and those below, and no platform.
# SPDX-License-Identifier: MIT
#
# Each floor is compiled in a tree of links that has no higher one, so that an include upwards finds no file. Public
# headers are there from the floor guard on; they know each other only.
set -euo pipefail
cd "$(dirname "$0")/.."

# From the lowest on; folders of one line may include each other.
floors='base
os
space
page_heap
policy
slabs
arenas
cache
sample
guard
profile
heap
view
control
libc cxx jemalloc darwin windows'
public_from=guard
platforms='_WIN32|_WIN64|__APPLE__|__MACH__|__linux__|__FreeBSD__|__NetBSD__|__OpenBSD__|__GLIBC__|__(x86_64|i386|aarch64|arm|riscv|powerpc64|s390x)__'

# System headers a floor may include. Only os may name a kernel.
language='inttypes|limits|stdalign|stdarg|stdatomic|stdbool|stddef|stdint'
allowed() {
    case $1 in
        os) echo "$language|string|errno|dlfcn|elf|fcntl|link|pthread|sched|signal|stdlib|time|unistd|crt_externs|windows|psapi|(linux|sys|asm|bits|mach|mach-o|malloc)/.*" ;;
        sample|guard|heap) echo "$language|string|errno" ;;
        darwin) echo "$language|errno|stdlib|(mach|malloc)/.*" ;;
        windows) echo "$language|errno|windows|psapi" ;;
        control|libc|cxx|jemalloc) echo "$language|string|errno|malloc|stdio" ;;
        *) echo "$language|string" ;;
    esac
}

compiler=${CC:-cc}
flags=(-std=gnu17 -D_GNU_SOURCE -fsyntax-only -Werror -Wall -Wextra -Wno-unused-function -Wno-unused-variable)
trees=$(mktemp -d)
trap 'rm -rf "$trees"' EXIT
bad=0
complain() {
    echo "check_floors: $*"
    bad=1
}

# The headers of include/, as a project without our sources sees them.
find include -name '*.h' | xargs -P 2 -I{} "$compiler" "${flags[@]}" -Iinclude -x c {} ||
    complain "a public header does not compile alone"

known=()
while read -ra folders; do
    known+=("${folders[@]}")
    tree=$trees/${folders[0]}
    for folder in "${known[@]}"; do
        mkdir -p "$tree/src/$folder"
        ln -s "$PWD/src/$folder"/* "$tree/src/$folder"
    done
    [ "${folders[0]}" != "$public_from" ] || public=yes
    [ -z "${public:-}" ] || cp -r include "$tree"
    for folder in "${folders[@]}"; do
        # These are lists of rows, not headers; and what another system's headers are needed for, make platforms
        # compiles, or comes below.
        find "$tree/src/$folder" -name '*.[ch]' ! -name option_list.h ! -name control_list.h \
            ! -path '*/os/darwin*' ! -path '*/os/*bsd.c' ! -path '*/os/unix.c' \
            ! -path '*/os/port.c' ! -path '*/src/darwin/*' ! -path '*/os/windows*' ! -path '*/src/windows/*'
    done | xargs -P 2 -n 1 "$compiler" "${flags[@]}" -DPRAIRIE_CHECK=1 ${public:+-I"$tree/include"} -x c ||
        complain "${folders[*]}: not every file compiles alone, with what lies below it"
    for folder in "${folders[@]}"; do
        found=$(grep -nE '^ *# *include *<' -r "src/$folder" | grep -vE "<(($(allowed "$folder"))(\.h)?|(prairie|jemalloc)/.*)>") &&
            complain "$folder must not include"$'\n'"$found"
        # base says what compilers have; os and the faces of two systems are what differs.
        [[ " base os darwin windows " == *" $folder "* ]] ||
            ! found=$(grep -nE "\\b($platforms)\\b" -r "src/$folder") ||
            complain "$folder must not have a line for one platform"$'\n'"$found"
    done
done <<<"$floors"

# What speaks to Windows, where there is a compiler for it.
windows_compiler=x86_64-w64-mingw32-gcc
if command -v "$windows_compiler" >/dev/null; then
    for tree in "$trees/os" "$trees/libc"; do
        find "$tree/src/" -follow \( -path "*/os/windows*.[ch]" -o -path '*/src/windows/*.[ch]' \) |
            xargs -P 2 -n 1 "$windows_compiler" "${flags[@]}" -Wno-attributes -DPRAIRIE_CHECK=1 -I"$PWD/include" -x c ||
            complain "a file for Windows does not compile alone, with what lies below it"
    done
fi

for folder in src/*/; do
    [[ " ${known[*]} " == *" $(basename "$folder") "* ]] || complain "$folder is no floor"
done
for file in src/*/*.c; do
    grep -qF "\"${file#src/}\"" src/prairie.c || grep -qF "\"${file##*/}\"" src/os/port.c ||
        [[ $file = src/os/linux_early.c || $file = src/libc/copies.c || $file = src/windows/dll* ]] ||
        complain "src/prairie.c does not include $file"
done
found=$(grep -nE '^ *# *include *".*\.c"' -r src --include='*.[ch]' | grep -vE '^src/(prairie|os/port).c:') &&
    complain "only src/prairie.c and src/os/port.c include .c files"$'\n'"$found"
exit $bad
