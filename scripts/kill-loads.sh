#!/bin/sh
# Kills `quarrier load` 200 times (or as often as the argument says), at different moments, and checks that
# the loaded messages are a prefix of the file, that they never become fewer, and that in the end every
# message is there exactly once.
set -eu
cd "$(dirname "$0")/.."
KEEP_KILLS=${1:-200} exec cargo test -p quarrier-cli --test cli -- --exact \
    keep::a_load_that_is_killed_again_and_again_loses_nothing_and_loads_nothing_twice
