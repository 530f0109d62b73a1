#!/bin/sh
# Kills `quarrier serve` 200 times (or as often as the argument says) while eight clients write to it, each
# time at another moment, and checks that every message that was acknowledged is there once, and none
# that nobody sent.
set -eu
cd "$(dirname "$0")/.."
QUARRIER_KILL_ROUNDS=${1:-200} exec cargo test --workspace --test query -- --exact \
    killed::what_was_acknowledged_is_there_once_however_often_it_is_killed
