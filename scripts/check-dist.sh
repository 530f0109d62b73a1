#!/bin/sh
# Installs the output of `make dist`, each package in its own way, and runs the README's commands:
# check-dist.sh FOLDER
# The environment has no cargo, no checkout, and no quarrier but the installed one.
# With $QEMU_LD_PREFIX, the C library of another machine, the programs are for this machine: they run where the
# kernel knows an emulator for them (binfmt_misc). Their Python packages are tested only on such a machine.
set -eu

cd "$(dirname "$0")/.."
[ $# -eq 1 ] || {
    echo "usage: check-dist.sh FOLDER" >&2
    exit 2
}
dist=$(cd "$1" && pwd)
scripts=$PWD/scripts
readme=$PWD/README.md
lab=$(mktemp -d)
trap 'rm -rf "$lab"' EXIT
plain=/usr/bin:/bin
python=$(python3 -c 'import sys; print(sys.executable)')

say() { printf 'check-dist: %s\n' "$1"; }

fail() {
    say "failed: $1" >&2
    exit 1
}

# clean PATH COMMAND...: runs a command as in the login of a user with a bare system.
clean() {
    path=$1
    shift
    env -i PATH="$path:$plain" HOME="$lab/home" LANG=C.UTF-8 TMPDIR="$lab" \
        ${QEMU_LD_PREFIX:+QEMU_LD_PREFIX="$QEMU_LD_PREFIX"} "$@"
}

# try HOW BIN OPTION PYTHON: runs the README's commands with the programs in BIN.
try() {
    say "$1: the commands of the README"
    said=$(clean "$2" quarrier --version) || fail "$1: quarrier --version"
    printf '%s\n' "$said" | sed 's/^/  /'
    # shellcheck disable=SC2086 # $3 may be empty, which means no option
    clean "$2" "$4" "$scripts/snippets.py" $3 "$readme" || fail "$1: the README"
}

mkdir "$lab/home"
clean / sh -c 'command -v cargo' && fail "cargo is in $plain"

say "checksums"
(cd "$dist" && sha256sum --check --quiet SHA256SUMS)

archive=$(ls "$dist"/quarrier-*-linux.tar.gz)
mkdir "$lab/tar"
tar -xzf "$archive" -C "$lab/tar" --strip-components 1
for file in LICENSE-MIT LICENSE-APACHE THIRD-PARTY-LICENCES sbom.cdx.json share/man/man1/quarrier-query.1; do
    [ -s "$lab/tar/$file" ] || fail "the archive has no $file"
done
bash -n "$lab/tar/share/bash-completion/completions/quarrier"
if command -v zsh >/dev/null; then zsh -n "$lab/tar/share/zsh/site-functions/_quarrier"; fi
if command -v fish >/dev/null; then fish -n "$lab/tar/share/fish/vendor_completions.d/quarrier.fish"; fi
if command -v man >/dev/null; then
    for page in "$lab"/tar/share/man/man1/*.1; do
        warned=$(LC_ALL=C.UTF-8 MANROFFSEQ='' MANWIDTH=80 man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null)
        [ -z "$warned" ] || fail "$page: $warned"
    done
fi
if [ -n "${QEMU_LD_PREFIX:-}" ] && ! clean "$lab/tar/bin" quarrier --version >/dev/null 2>&1; then
    say "this machine cannot run the programs: no emulator for them is registered (binfmt_misc)"
    exit 0
fi
try archive "$lab/tar/bin" "" "$python"

mkdir "$lab/deb"
dpkg-deb -x "$dist"/quarrier_*.deb "$lab/deb"
try debian "$lab/deb/usr/bin" "" "$python"

# The programs find each other in separate folders, which some distributions require.
mkdir -p "$lab/apart/bin" "$lab/apart/libexec/quarrier"
cp "$lab/tar/bin/quarrier" "$lab/apart/bin/"
cp "$lab/tar/bin/quarrier-sql" "$lab/apart/libexec/quarrier/"
[ "$(clean "$lab/apart/bin" quarrier query --format csv 'SELECT 1 AS a')" = "a
1" ] || fail "quarrier-sql in libexec is not found"

[ -z "${QEMU_LD_PREFIX:-}" ] || {
    say "the programs passed; the Python packages need a Python of their machine"
    exit 0
}
ls "$dist"/*.whl >/dev/null 2>&1 || {
    say "no Python packages to test"
    exit 0
}
"$python" -m venv "$lab/venv"
# Dependencies of the packages come from the package index.
"$lab/venv/bin/python" -m pip download --quiet --disable-pip-version-check --only-binary :all: \
    --find-links "$dist" --dest "$lab/wheels" 'quarrier[sql]'
clean "$lab/venv/bin" python -m pip install --quiet --disable-pip-version-check --no-index \
    --find-links "$dist" --find-links "$lab/wheels" quarrier
clean "$lab/venv/bin" python -m quarrier --version >/dev/null || fail "python -m quarrier"
said=$(clean "$lab/venv/bin" quarrier query 'SELECT 1' 2>&1) && fail "query without quarrier-sql: $said"
case $said in
    *"pip install 'quarrier[sql]'"*) ;;
    *) fail "query without quarrier-sql says: $said" ;;
esac
clean "$lab/venv/bin" python -m pip install --quiet --disable-pip-version-check --no-index \
    --find-links "$dist" --find-links "$lab/wheels" 'quarrier[sql]'
try pip "$lab/venv/bin" --python "$lab/venv/bin/python"
if free=$(command -v python3.14t); then
    say "the packages for $free"
    "$free" -m venv "$lab/free"
    "$lab/free/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        --find-links "$dist" 'quarrier[sql]'
    said=$(clean "$lab/free/bin" python -W error -c \
        'import sys, quarrier; print(len(quarrier.search(b"abc", "b")), sys._is_gil_enabled())')
    [ "$said" = "1 False" ] || fail "$free: $said"
fi
say "all checks passed"
