#!/bin/sh
# search.sh - ripgrep on the allocator that RIPGREP_ON names, with no settings of the user's.
# SPDX-License-Identifier: MIT
set -eu
case ${RIPGREP_ON:-} in
    system | prairie | mimalloc | jemalloc) ;;
    *) echo "search.sh: RIPGREP_ON is '${RIPGREP_ON:-}', not system, prairie, mimalloc or jemalloc" >&2; exit 2 ;;
esac
exec "$(dirname "$0")/../../build/ripgrep/rg-$RIPGREP_ON" --no-config "$@"
