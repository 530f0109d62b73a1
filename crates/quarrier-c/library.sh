#!/bin/sh
# Builds libquarrier.so and libquarrier.a from the static library that cargo builds:
#   library.sh TARGET/libquarrier_c.a FOLDER
# Both export only the functions of quarrier.h, so that a program can also link its own zstd or another Rust
# library. The shared library that cargo builds would have no soname.
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

# Older linkers fail on the bitcode that Rust's own objects carry for link-time optimisation.
objcopy --remove-section=.llvmbc --remove-section=.llvmcmd "$archive" "$work/objects.a"
archive=$work/objects.a

# The system libraries of Rust's standard library: `rustc --print native-static-libs`.
system="-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc"
# The number in the soname changes when programs linked before would break: never within 0.
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

# Rename into place, so that a running program keeps the file it has.
for file in "libquarrier.so.$version" libquarrier.a; do
    mv -f "$work/$file" "$out/$file"
done
ln -sf "libquarrier.so.$version" "$out/libquarrier.so.0"
ln -sf libquarrier.so.0 "$out/libquarrier.so"
