#!/bin/sh
# Searches with 8 processes on this machine, then prints the rows of all shards.
#
#   examples/cluster/loop.sh PATTERNS FOUND SOURCE...
set -eu
patterns=$1 found=$2
shift 2
for shard in 0 1 2 3 4 5 6 7; do
    quarrier search -f "$patterns" "$@" --to "$found" --shard "$shard/8" --workers 1 &
done
# A failed shard does no harm: the last command searches the missing units.
wait
exec quarrier search -f "$patterns" "$@" --to "$found" --format json
