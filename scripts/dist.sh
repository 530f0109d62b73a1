#!/bin/sh
# Builds all packages from the checkout into target/dist, and tests them there.
#
#   PROFILE=quick            another profile of Cargo.toml than `release`
#   DIST_BINARIES=FOLDER     programs that are already built
#   DIST_WITHOUT_WHEELS=1    no Python packages, which take as long again
#   TARGET=TRIPLE            packages for another machine than this one: aarch64-unknown-linux-gnu
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin"
export PATH

profile=${PROFILE:-release}
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
tools=$target/dist-tools
out=$target/dist
work=$target/dist-work
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# The machine that the packages are for, and the prefix of its binary tools.
case ${TARGET:-} in
    '')
        machine=$(uname -m)
        architecture=$(dpkg --print-architecture)
        prefix=
        ;;
    aarch64-unknown-linux-gnu)
        machine=aarch64
        architecture=arm64
        prefix=aarch64-linux-gnu-
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
        # The emulator finds the dynamic linker and the C library in this folder.
        export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
        ;;
    *)
        echo "dist: TARGET=$TARGET is unknown; known: aarch64-unknown-linux-gnu" >&2
        exit 2
        ;;
esac
export STRIP="${prefix}strip" OBJDUMP="${prefix}objdump"
name=quarrier-$version-$machine-linux
# Archives contain the time of the commit, so that the same commit gives the same files.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH

say() { printf 'dist: %s\n' "$1"; }

build_programs() {
    programs=${DIST_BINARIES:-}
    [ -z "$programs" ] || return 0
    say "building the programs ($profile${TARGET:+ for $TARGET})"
    cargo build --locked --profile "$profile" ${TARGET:+--target "$TARGET"} -p quarrier-cli -p quarrier-sql
    case $profile in
        dev) programs=$target/${TARGET:+$TARGET/}debug ;;
        *) programs=$target/${TARGET:+$TARGET/}$profile ;;
    esac
}

# The files below a prefix, then those beside them in an archive.
stage() {
    say "collecting programs, man pages, completions, licences"
    if [ -n "${TARGET:-}" ]; then
        # The emulator runs the program that prints its man pages and completions.
        printf '#!/bin/sh\nexec qemu-%s "%s" "$@"\n' "$machine" "$programs/quarrier" >"$work/speaker"
        chmod +x "$work/speaker"
        export SPEAKER="$work/speaker"
    fi
    scripts/install.sh "$programs" "$work/$name" >/dev/null
    scripts/dependencies.py licences >"$work/THIRD-PARTY-LICENCES"
    scripts/dependencies.py sbom >"$out/$name.cdx.json"
    cp LICENSE-MIT LICENSE-APACHE README.md CHANGELOG.md "$work/THIRD-PARTY-LICENCES" "$work/$name/"
    cp "$out/$name.cdx.json" "$work/$name/sbom.cdx.json"
    "$STRIP" --strip-debug "$work/$name"/bin/*
}

make_archive() {
    say "$name.tar.gz"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$work" -cf - "$name" | gzip -9 -n >"$out/$name.tar.gz"
}

make_debian_package() {
    package=quarrier_${version}_$architecture.deb
    say "$package"
    scripts/deb.sh "$work/$name" "$work/THIRD-PARTY-LICENCES" "$out/$package" "$architecture"
    if command -v lintian >/dev/null; then
        lintian --fail-on error --tag-display-limit 0 "$out/$package"
    else
        say "lintian is not installed, so its checks are skipped"
    fi
}

# make_wheel CRATE MODULE PROGRAM [OPTION...]: a package with the program inside, which pip installs beside
# python.
make_wheel() {
    crate=crates/$1
    data=$crate/$2.data
    mkdir -p "$data/scripts"
    cp "$work/$name/bin/$3" "$data/scripts/"
    shift 3
    cp "$work/THIRD-PARTY-LICENCES" "$crate/"
    built=0
    (cd "$crate" && "$maturin" build --locked --profile "$profile" ${TARGET:+--target "$TARGET"} --out "$out" --quiet \
        --sbom-include "$out/$name.cdx.json" "$@") || built=$?
    rm -rf "$data" "$crate/THIRD-PARTY-LICENCES"
    return "$built"
}

make_wheels() {
    [ -z "${DIST_WITHOUT_WHEELS:-}" ] || return 0
    maturin=$tools/bin/maturin
    say "the Python packages"
    make_wheel quarrier-python quarrier._light quarrier
    make_wheel quarrier-python-sql quarrier_sql._native quarrier-sql
    # A free-threaded interpreter has no stable ABI: each version needs packages of its own. PyO3 supports
    # them from 3.14 on.
    if [ -z "${TARGET:-}" ] && free=$(command -v python3.14t); then
        say "the Python packages for $free"
        make_wheel quarrier-python quarrier._light quarrier --interpreter "$free"
        make_wheel quarrier-python-sql quarrier_sql._native quarrier-sql --interpreter "$free"
    fi
    for wheel in "$out"/*.whl; do
        # Prints the systems on which each can be installed, by the requirements of its programs and
        # libraries.
        "$tools/bin/python" -m auditwheel show "$wheel" | tr '\n' ' '
        echo
    done
    "$tools/bin/python" -m twine check --strict "$out"/*.whl
}

rm -rf "$out" "$work"
mkdir -p "$out" "$work"
build_programs
stage
make_archive
make_debian_package
make_wheels
(cd "$out" && sha256sum -- * >SHA256SUMS)
scripts/check-dist.sh "$out"
say "done; in $out:"
du -h -- "$out"/*
