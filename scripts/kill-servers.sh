#!/bin/sh
# Kills `quarrier serve` 200 times (or as often as the argument says), at different moments, while eight
# clients write to it, and checks that every acknowledged message is there exactly once, and no message that
# nobody sent.
set -eu
cd "$(dirname "$0")/.."
QUARRIER_KILL_ROUNDS=${1:-200} exec cargo test --workspace --test query -- --exact \
    killed::what_was_acknowledged_is_there_once_however_often_it_is_killed
