#!/bin/sh
# build.sh - compiles what sources.py wrote, runs the program, and prints the objects' checksums.
# SPDX-License-Identifier: MIT
#
#   build.sh file COMPILER INPUT DIR     one large file, optimised and with debug information
#   build.sh tree INPUT DIR              make -j2
set -eu
case $1 in
file)
    cd "$4"
    cp "$3/large.cc" .
    "$2" -std=c++17 -O1 -g -frandom-seed=prairie -c large.cc
    sha256sum large.o
    ;;
tree)
    cp "$2"/* "$3"
    cd "$3"
    make -s -j2
    sha256sum -- *.o
    ./program
    ;;
esac
