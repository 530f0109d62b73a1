#!/bin/sh
# Builds a Debian package from a folder that scripts/install.sh filled:
# deb.sh FOLDER LICENCES FILE.deb ARCHITECTURE
# $STRIP and $OBJDUMP are the tools for programs of this architecture.
set -eu

[ $# -eq 4 ] || {
    echo "usage: deb.sh FOLDER LICENCES FILE.deb ARCHITECTURE" >&2
    exit 2
}
folder=$1
licences=$2
package=$3
here=$(dirname "$0")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../Cargo.toml" | head -n 1)
architecture=$4
date=$(date -u -R -d "@${SOURCE_DATE_EPOCH:-$(date +%s)}")

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root/usr/share/doc/quarrier" "$root/DEBIAN"
cp -r "$folder/bin" "$root/usr/"
cp -r "$folder/share/man" "$folder/share/bash-completion" "$folder/share/fish" "$root/usr/share/"
mkdir -p "$root/usr/share/zsh/vendor-completions"
cp "$folder/share/zsh/site-functions/_quarrier" "$root/usr/share/zsh/vendor-completions/"
gzip -9 -n "$root"/usr/share/man/man1/*.1
"${STRIP:-strip}" --strip-unneeded "$root"/usr/bin/* 2>/dev/null || true

# The newest version of the C library that one of the programs requires.
libc=$("${OBJDUMP:-objdump}" -T "$root"/usr/bin/* | grep -o 'GLIBC_[0-9.]*' | sort -u -V | tail -n 1 | cut -d _ -f 2)

cat >"$root/usr/share/doc/quarrier/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: quarrier
Source: https://github.com/quarrier/quarrier
Comment: third-party-licences.gz lists the libraries in the programs, with their licences

Files: *
Copyright: 2026 The quarrier developers
License: Expat or Apache-2.0

License: Apache-2.0
 On Debian systems the text is in /usr/share/common-licenses/Apache-2.0.

License: Expat
$(sed '1,/^Permission/{/^Permission/!d}; s/^$/./; s/^/ /' "$here/../LICENSE-MIT")
END
gzip -9 -n -c "$licences" >"$root/usr/share/doc/quarrier/third-party-licences.gz"
printf 'quarrier (%s) unstable; urgency=medium\n\n  * See the list of changes of the project.\n\n -- quarrier <packages@quarrier.invalid>  %s\n' \
    "$version" "$date" | gzip -9 -n -c >"$root/usr/share/doc/quarrier/changelog.gz"

cat >"$root/DEBIAN/control" <<END
Package: quarrier
Version: $version
Architecture: $architecture
Maintainer: quarrier <packages@quarrier.invalid>
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Depends: libc6 (>= $libc), libgcc-s1 (>= 4.2)
Suggests: fuse3, ocl-icd-libopencl1
Section: utils
Priority: optional
Homepage: https://github.com/quarrier/quarrier
Description: search, carve and query raw data in place
 Finds any number of patterns in files, disk images and devices, recovers
 deleted files from them, and answers SQL over message logs, without loading
 anything first, and reports how close it came to the speed of the machine.
END
find "$root/usr" -type d -exec chmod 755 {} +
find "$root/usr/share" -type f -exec chmod 644 {} +
(cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
dpkg-deb --root-owner-group -Z"${DPKG_DEB_COMPRESSOR_TYPE:-xz}" --build "$root" "$package" >/dev/null
