#!/bin/sh
# Makes libquarrier.so and libquarrier.a of the static library that cargo builds:
#   library.sh TARGET/libquarrier_c.a FOLDER
# Both show the functions of quarrier.h and nothing else, so that a program can have its own zstd or another
# library written in Rust beside them. cargo's own shared library would have no name
# (soname).
set -eu

[ $# -eq 2 ] || {
    echo "usage: library.sh LIBQUARRIER_C.A FOLDER" >&2
    exit 2
}
here=$(cd "$(dirname "$0")" && pwd)
archive=$1
out=$2
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)
CC=${CC:-cc}

mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The bitcode that Rust's own objects carry, for a later optimisation, makes linkers fail that are older.
objcopy --remove-section=.llvmbc --remove-section=.llvmcmd "$archive" "$work/objects.a"
archive=$work/objects.a

# What Rust's library asks of the system: `rustc --print native-static-libs`.
system="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"
# The number in the soname changes when a program that was linked before would break: never within 0.
# shellcheck disable=SC2086 # a list of options
"$CC" -shared -o "$work/libquarrier.so.$version" \
    -Wl,-soname,libquarrier.so.0 -Wl,--version-script,"$here/quarrier.map" \
    -Wl,--gc-sections -Wl,-z,relro -Wl,-z,now -Wl,--as-needed \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive $system

nm --defined-only "$archive" 2>/dev/null | sed -n 's/.* T \(quarrier_[a-z0-9_]*\)$/\1/p' | sort -u >"$work/names"
[ -s "$work/names" ] || {
    echo "library: $archive has no function of quarrier.h" >&2
    exit 1
}
roots=$(sed 's/^/-u /' "$work/names" | tr '\n' ' ')
# shellcheck disable=SC2086 # a list of options
ld -r -o "$work/quarrier.o" --gc-sections $roots --whole-archive "$archive"
objcopy --keep-global-symbols="$work/names" "$work/quarrier.o"
ar rcs "$work/libquarrier.a" "$work/quarrier.o"

# Renamed into place, so that a program that runs keeps the file it has.
for file in "libquarrier.so.$version" libquarrier.a; do
    mv -f "$work/$file" "$out/$file"
done
ln -sf "libquarrier.so.$version" "$out/libquarrier.so.0"
ln -sf libquarrier.so.0 "$out/libquarrier.so"
