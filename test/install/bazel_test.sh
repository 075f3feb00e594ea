#!/usr/bin/env bash
# bazel_test.sh - a program of another project, built by Bazel against a checkout of prairie.
# SPDX-License-Identifier: MIT
#
#   bazel_test.sh SOURCE_FOLDER FOLDER      FOLDER keeps what Bazel unpacks and what npm brings
#
# Debian has Bazel 4.2, which knows no modules, and no module can be fetched without Bazel's registry: the repositories that
# MODULE.bazel names are handed over as folders, rules_cc with the one function replaced that 4.2 does not have. So BUILD.bazel is
# built with, and of the MODULE.bazel files only the syntax is looked at (buildifier). dev/packages runs it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(realpath "$1") keep=$(realpath -m "$2")
version=$(sed -n 's/^#define PRAIRIE_VERSION "\([0-9.]*\)"/\1/p' "$source/include/prairie/prairie.h")
buildifier_version=8.2.1
rules=/usr/share/bazel/rules
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$keep"

quietly() {
    if ! "$@" >"$scratch/log" 2>&1; then
        echo "failed: $*"
        tail -40 "$scratch/log"
        exit 1
    fi
}

if command -v npm >/dev/null; then
    [ -x "$keep/node_modules/.bin/buildifier" ] || quietly npm install --silent --no-save --prefix "$keep" "@bazel/buildifier@$buildifier_version"
    quietly "$keep/node_modules/.bin/buildifier" -mode=check -lint=warn "$source"/{MODULE,BUILD}.bazel "$here"/bazel/*.bazel
    echo "ok: buildifier has nothing to say"
else
    echo "left out: buildifier (needs npm)"
fi

command -v bazel >/dev/null && [ -d $rules/cc ] && [ -d $rules/java ] || { echo "left out: Bazel (dev/setup packages brings it)"; exit 77; }
mkdir "$scratch/project" "$scratch/prairie"
(cd "$source" && cp -r --parents MODULE.bazel BUILD.bazel include src tool/prairie-sys/names.h "$scratch/prairie")
cp "$here"/bazel/*.{bazel,c} "$here/consumer/main.c" "$scratch/project"
cp -r $rules/cc "$scratch/rules_cc"
sed -i 's/, "use_cpp_toolchain"//; s#use_cpp_toolchain()#["@bazel_tools//tools/cpp:toolchain_type"]#' "$scratch"/rules_cc/cc/private/rules_impl/*.bzl
touch "$scratch"/{project,prairie}/WORKSPACE
printf 'local_repository(name = "prairie", path = "../prairie")\n' >"$scratch/project/WORKSPACE"

cd "$scratch/project"
bazel=(bazel --batch --output_user_root="$scratch/bazel")
with=(--override_repository=rules_cc="$scratch/rules_cc" --override_repository=rules_java="$rules/java" --symlink_prefix=made-)
trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
for mode in fastbuild opt; do
    quietly "${bazel[@]}" build "${with[@]}" --compilation_mode=$mode //:with_bazel
    got=$(made-bin/with_bazel)
    [ "$got" = "with_bazel $version" ] || { echo "Bazel, $mode: got '$got', wanted 'with_bazel $version'"; exit 1; }
    echo "ok: Bazel, $mode: $got"
done
