#!/bin/sh
# Installs libquarrier: install-lib.sh FOLDER PREFIX
# FOLDER has the static library that cargo builds, libquarrier_c.a. Libraries, headers, and the files of
# pkg-config and CMake go to $DESTDIR$PREFIX. The script lists the files that it writes.
set -eu

cd "$(dirname "$0")/.."

[ $# -eq 2 ] || {
    echo "usage: install-lib.sh FOLDER-OF-LIBQUARRIER_C.A PREFIX" >&2
    exit 2
}
archive=$1/libquarrier_c.a
# Not every shell expands ~ in PREFIX=~/.local.
# shellcheck disable=SC2088
case $2 in
    '~/'*) prefix=$HOME/${2#'~/'} ;;
    /*) prefix=$2 ;;
    *) prefix=$PWD/$2 ;;
esac
root=${DESTDIR:-}$prefix
crate=crates/quarrier-c
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

[ -f "$archive" ] || {
    echo "install-lib: $archive is not there; run: cargo build --release -p quarrier-c" >&2
    exit 1
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$crate/library.sh" "$archive" "$work"
for file in quarrier.pc quarrier-config.cmake quarrier-config-version.cmake; do
    sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" "$crate/$file.in" >"$work/$file"
done

# put MODE FILE PLACE
put() {
    install -D -m "$1" "$2" "$root/$3" || {
        echo "install-lib: cannot write $root/$3; try another PREFIX, such as ~/.local, or sudo" >&2
        exit 1
    }
    echo "$root/$3"
}

put 755 "$work/libquarrier.so.$version" "lib/libquarrier.so.$version"
put 644 "$work/libquarrier.a" lib/libquarrier.a
for link in libquarrier.so.0 libquarrier.so; do
    cp -P "$work/$link" "$root/lib/$link"
    echo "$root/lib/$link"
done
for header in quarrier.h quarrier.hpp quarrier/svfs.hpp; do
    put 644 "$crate/include/$header" "include/$header"
done
put 644 "$work/quarrier.pc" lib/pkgconfig/quarrier.pc
for file in quarrier-config.cmake quarrier-config-version.cmake; do
    put 644 "$work/$file" "lib/cmake/quarrier/$file"
done
