#!/usr/bin/env bash
# checker_test.sh - dev/check_site.py passes a good site and tells each thing that can be broken.
# SPDX-License-Identifier: MIT
#
#   checker_test.sh SOURCE_FOLDER
set -euo pipefail
check=$1/dev/check_site.py
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# A site of two pages, and more words for the first of them.
site() {
    rm -rf "$scratch/site"
    mkdir -p "$scratch/site/docs"
    printf '<img src="p.svg"><a href="docs/two.html#here">two</a><a href="https://example.org">out</a>%s' "$1" \
        >"$scratch/site/index.html"
    printf '<h2 id="here">two</h2><a href="../index.html">one</a><a href="/docs/">none</a>' >"$scratch/site/docs/two.html"
    printf '<p>' >"$scratch/site/docs/index.html"
    printf '<svg/>' >"$scratch/site/p.svg"
    printf 'p { background: url("p.svg") }' >"$scratch/site/s.css"
}

site ''
"$check" "$scratch/site"

# What is added, and what is said of it.
while IFS='|' read -r added said; do
    site "$added"
    status=0
    "$check" "$scratch/site" >"$scratch/out" || status=$?
    if [ $status != 1 ] || ! grep -qF "index.html: $said" "$scratch/out"; then
        echo "with $added: exit code $status, and:"
        cat "$scratch/out"
        exit 1
    fi
done <<'CASES'
<a href="docs/three.html">|docs/three.html leads nowhere
<a href="docs/two.html#there">|docs/two.html#there has no such heading
<a href="#there">|#there has no such heading
<img src="q.svg">|q.svg leads nowhere
<a href="../outside.html">|../outside.html leads nowhere
<script src="https://example.org/s.js"></script>|loads https://example.org/s.js from elsewhere
<link rel="stylesheet" href="//example.org/s.css">|loads //example.org/s.css from elsewhere
<p style="background: url(https://example.org/p.png)">|loads https://example.org/p.png from elsewhere
CASES

site ''
printf '@import "https://example.org/s.css";' >>"$scratch/site/s.css"
if "$check" "$scratch/site" >"$scratch/out"; then echo "a style from elsewhere passed"; exit 1; fi

status=0
"$check" "$scratch/nothing" >"$scratch/out" || status=$?
[ $status = 2 ]
echo "9 broken sites were told"
