#!/bin/sh
# Follows 1,000 random histories of tables, half of them with a key (or twice as many as the argument says),
# by subscriptions that are interrupted and resumed while the server is killed, and checks that their changes
# add up to the tables.
set -eu
cd "$(dirname "$0")/.."
QUARRIER_HISTORIES=${1:-500} exec cargo test --workspace --test query -- --exact \
    live::changes_add_up_to_the_table
