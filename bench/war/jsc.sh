#!/bin/sh
# jsc.sh - runs JavaScriptCore's shell on malloc, or with WAR_HEAP=own on its own libpas.
# SPDX-License-Identifier: MIT
#
# The mere presence of Malloc is the switch. One thread collects and compiles, so that memory is the same
# in every run.
set -eu
if [ "${WAR_HEAP:-}" = own ]; then unset Malloc; else export Malloc=1; fi
exec jsc --useConcurrentJIT=0 --useConcurrentGC=0 --numberOfGCMarkers=1 "$@"
