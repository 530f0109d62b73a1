#!/bin/sh
# Compiles for 64-bit Arm on another machine: arm.sh test|check
#
#   test     the tests of the crates with loops for NEON, run by qemu
#   check    type-checks the program and all its tests
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
target=aarch64-unknown-linux-gnu
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
# The emulator finds the dynamic linker and the C library in this folder.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"

# run TARGET... [-- FILTER...]: tests of the crates with loops for NEON, all compiled with the same features.
run() {
    cargo test --locked --target "$target" \
        -p quarrier-core -p quarrier-search -p quarrier-filter -p quarrier-messages "$@"
}

case ${1:-} in
    test)
        # Test the loops themselves, then the engines against their oracles. Devices, pipelines and files run
        # the same code on every CPU, and the skipped tests would take minutes here.
        run --lib -- --skip a_known_code
        run --test search -- engines regex patterns --skip gpu --skip a_hundred_to_a_hundred_thousand
        run --test filter -- scan::
        run --test messages
        ;;
    check) cargo check --locked --target "$target" -p quarrier-cli --tests ;;
    *)
        echo "usage: arm.sh test|check" >&2
        exit 2
        ;;
esac
