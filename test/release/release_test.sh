#!/usr/bin/env bash
# release_test.sh - a release is the same wherever it is made, its bill of materials is whole, and bad trees are refused.
# SPDX-License-Identifier: MIT
#
#   release_test.sh SOURCE_FOLDER FOLDER      Python's packages are installed in FOLDER once
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$1
export PRAIRIE_SBOM_PLACE=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export GIT_CONFIG_GLOBAL=$scratch/gitconfig GIT_CONFIG_SYSTEM=/dev/null
git config --global user.name test
git config --global user.email test@example.org
git config --global init.defaultBranch main

quietly() {
    if ! "$@" >"$scratch/log" 2>&1; then
        echo "failed: $*"
        cat "$scratch/log"
        exit 1
    fi
}

# The tree as it would be committed, as one commit.
one=$scratch/one
mkdir "$one"
if git -C "$source" rev-parse --git-dir >/dev/null 2>&1; then
    (cd "$source" && git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -P -t "$one" 2>/dev/null) || true
else
    cp -r "$source/." "$one"
fi
quietly git -C "$one" init
quietly git -C "$one" add -A
quietly git -C "$one" commit -m "the tree"

"$one/dev/tool" metadata >/dev/null || { [ $? = 77 ] && exit 77; exit 1; }

# Another place, another day, other settings.
quietly env TZ=Asia/Tokyo "$one/dev/release" --sources
git config --global tar.umask 0077
git config --global core.autocrlf true
two="$scratch/another place"
quietly git -c core.autocrlf=false clone "$one" "$two"
umask 077
quietly env LC_ALL=C TZ=America/Lima "$two/dev/release" --sources
umask 022
git config --global --unset core.autocrlf
cmp "$one/build/release/SHA256SUMS" "$two/build/release/SHA256SUMS" || { echo "two releases of one commit differ"; exit 1; }
(cd "$two/build/release" && sha256sum --quiet -c SHA256SUMS)
[ "$(wc -l <"$one/build/release/SHA256SUMS")" = 3 ] || { echo "SHA256SUMS has not all files"; exit 1; }
tarball=$(echo "$one"/build/release/prairie-*.tar.gz)
mkdir "$scratch/unpacked"
tar -xzf "$tarball" -C "$scratch/unpacked"
diff -r --exclude=.git --exclude=build "$one" "$scratch/unpacked"/*/
echo "ok: two clones give the same $(wc -c <"$tarball") bytes, which are the tree"

"$PRAIRIE_SBOM_PLACE/bin/python" "$here/sbom_test.py" "$one/tool/Cargo.lock" "$one"/build/release/*.cdx.json "$tarball"

# refused WORDS ARGUMENT...: it ends with 2 and says so in one line
refused() {
    local words=$1 status=0
    shift
    "$one/dev/release" "$@" >"$scratch/said" 2>&1 || status=$?
    if [ $status != 2 ] || [ "$(wc -l <"$scratch/said")" != 1 ] || ! grep -qF "$words" "$scratch/said"; then
        echo "wanted a refusal that says '$words', got status $status and:"
        cat "$scratch/said"
        exit 1
    fi
    git -C "$one" checkout -q .
    git -C "$one" clean -qfd
    echo "ok: $(cat "$scratch/said")"
}
touch "$one/src/new.c"
refused "not everything is committed: src/new.c" --sources
echo >>"$one/README.md"
refused "not everything is committed: README.md" --sources
sed -i 's/^#define PRAIRIE_VERSION .*/#define PRAIRIE_VERSION "99.0.1"/' "$one/include/prairie/prairie.h"
quietly git -C "$one" commit -am "another version"
refused "the version is 99.0.1" --sources
printf '# Changes\n\n## 99.0.1\n\n## 0.1.0\n\n- Something.\n' >"$one/CHANGELOG.md"
"$one/dev/check_version.py" --rewrite >/dev/null || { echo "--rewrite left something"; exit 1; }
"$one/dev/check_version.py" || { echo "--rewrite did not write everything"; exit 1; }
quietly git -C "$one" commit -am "its number everywhere"
refused "the newest section of CHANGELOG.md is empty" --sources
git -C "$one" tag v99.0.1 HEAD~1
refused "v99.0.1 is tag of another commit" --sources
refused "unknown argument 'sources'" sources
