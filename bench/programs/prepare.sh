#!/bin/sh
# prepare.sh - writes the input of a workload whose source here holds a size to be filled in.
# SPDX-License-Identifier: MIT
#
#   prepare.sh orders|document|script PER_CENT FOLDER
set -eu
per_cent=$2 folder=$3
cd "$(dirname "$0")"
scaled() { n=$(($1 * per_cent / 100)); [ $n -gt 0 ] || n=1; echo $n; }
case $1 in
orders)   sed "s/@ROWS@/$(scaled 180000)/" orders.sql >"$folder/orders.sql" ;;
document) sed "s/@PAGES@/$(scaled 16)/" document.ps >"$folder/document.ps" ;;
script)   { echo "const PER_CENT = $per_cent;"; cat script.js; } >"$folder/script.js" ;;
*) echo "prepare.sh: no input is called $1" >&2; exit 2 ;;
esac
