#!/bin/sh
# Makes a fresh Debian or Ubuntu machine ready: setup.sh [rust] [image] [gpu] [python] [serve] [c] [dist]
# [docs]
# Installs only missing packages, and reports them. If it may not install, it prints the command and stops.
set -eu

cd "$(dirname "$0")/.."
PATH="$PATH:$HOME/.cargo/bin:/usr/sbin:/sbin"

stop() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

have() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null 2>&1 || return 1
    done
}

# install REASON PACKAGE...
install() {
    reason=$1
    shift
    command="apt-get update && apt-get install -y --no-install-recommends $*"
    have apt-get || stop "$reason needs $* and this machine has no apt-get; install them and try again"
    [ "$(id -u)" -eq 0 ] || stop "$reason needs $*; run this and try again:" "  sudo sh -c '$command'"
    echo "setup: $reason needs $*; running: $command"
    export DEBIAN_FRONTEND=noninteractive
    sh -c "$command" || stop "could not install $*; is the network there? Then run: $command"
}

# The Rust compiler, at least as new as Cargo.toml requires, and a linker.
set_up_rust() {
    have cc || install "linking Rust programs" gcc libc6-dev
    have cargo rustc || stop "cargo is missing; get it from https://rustup.rs:" \
        "  curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version 2>/dev/null | cut -d ' ' -f 2)
    [ -n "$found" ] || stop "rustc is here but does not run; run:" "  rustup default stable"
    oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)
    [ "$oldest" = "$wanted" ] || stop "rustc is $found, $wanted or newer is needed; run:" "  rustup update stable" \
        "(a rustc from the distribution: get rustup from https://rustup.rs first)"
}

# The compiler, linker and emulator for 64-bit Arm.
set_up_arm() {
    arm=aarch64-unknown-linux-gnu
    missing=
    have aarch64-linux-gnu-gcc || missing="$missing gcc-aarch64-linux-gnu"
    [ -e /usr/aarch64-linux-gnu/lib/libc.so.6 ] || missing="$missing libc6-dev-arm64-cross"
    have qemu-aarch64 || missing="$missing qemu-user"
    # shellcheck disable=SC2086 # a list of package names
    [ -z "$missing" ] || install "building for 64-bit Arm" $missing
    [ -d "$(rustc --print sysroot)/lib/rustlib/$arm" ] && return
    have rustup || stop "the standard library for $arm is missing; get rustup from https://rustup.rs, then run:" \
        "  rustup target add $arm"
    echo "setup: building for 64-bit Arm needs its standard library; running: rustup target add $arm"
    rustup target add "$arm" || stop "could not add $arm; is the network there? Then run: rustup target add $arm"
}

# The tools that make disk images without root (ext4, FAT and other file systems, virtual disks, EWF,
# compressed ones), and the references for their contents: sleuthkit for files, yara for rules.
set_up_image() {
    missing=
    have mkfs.ext4 debugfs || missing="$missing e2fsprogs"
    have mkfs.vfat || missing="$missing dosfstools"
    have mcopy mdel || missing="$missing mtools"
    have qemu-img qemu-io || missing="$missing qemu-utils"
    have ewfacquire || missing="$missing ewf-tools"
    have xz || missing="$missing xz-utils"
    have bzip2 || missing="$missing bzip2"
    have zstd || missing="$missing zstd"
    have mkntfs ntfscp || missing="$missing ntfs-3g"
    have mkfs.exfat || missing="$missing exfatprogs"
    have mkfs.xfs xfs_db || missing="$missing xfsprogs"
    have mkfs.btrfs btrfs || missing="$missing btrfs-progs"
    have mkapfs || missing="$missing apfsprogs"
    have xorriso || missing="$missing xorriso"
    have genisoimage || missing="$missing genisoimage"
    have fls icat || missing="$missing sleuthkit"
    have yara || missing="$missing yara"
    # shellcheck disable=SC2086 # a list of package names
    [ -z "$missing" ] || install "making disk images" $missing
}

# OpenCL on the CPU, and a simulator that checks kernels, so that the tests of devices run without a GPU.
set_up_gpu() {
    [ -e /etc/OpenCL/vendors/pocl.icd ] && have oclgrind && return
    install "running the GPU's kernels on the CPU" pocl-opencl-icd ocl-icd-libopencl1 oclgrind
}

# The clients for the tests and snippets of the server.
set_up_serve() {
    missing=
    have psql || missing="$missing postgresql-client"
    have curl || missing="$missing curl"
    have javac || missing="$missing default-jdk-headless"
    [ -e /usr/share/java/postgresql.jar ] || missing="$missing libpostgresql-jdbc-java"
    # shellcheck disable=SC2086 # a list of package names
    [ -z "$missing" ] || install "testing the server" $missing
}

# Both compilers with their sanitizers, and pkg-config and CMake, for the tests of the library for C and C++.
set_up_c() {
    missing=
    have gcc g++ || missing="$missing g++"
    have nm objcopy objdump || missing="$missing binutils"
    have clang clang++ || missing="$missing clang libclang-rt-dev"
    have cmake || missing="$missing cmake"
    have make || missing="$missing make"
    have pkg-config || missing="$missing pkg-config"
    # shellcheck disable=SC2086 # a list of package names
    [ -z "$missing" ] || install "testing the library for C and C++" $missing
}

# A virtual environment in .venv with the packages that the tests of the Python package use.
set_up_python() {
    have python3 || install "the Python package" python3 python3-venv
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        stop "$(python3 --version) is too old for the Python package; 3.11 or newer is needed"
    have cc || install "compiling kernels of Cython" gcc libc6-dev
    headers=$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')
    [ -e "$headers/Python.h" ] || install "compiling kernels of Cython" python3-dev
    wanted=crates/quarrier-python/requirements-test.txt
    cmp -s "$wanted" .venv/installed.txt && return
    python3 -c 'import ensurepip' 2>/dev/null || install "a virtual environment" python3-venv
    echo "setup: installing the packages of $wanted into .venv"
    python3 -m venv --clear .venv
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$wanted" ||
        stop "could not install $wanted; is the network there? Then run: scripts/setup.sh python"
    cp "$wanted" .venv/installed.txt
}

# tools NAME REQUIREMENTS: a separate environment for tools, in target/NAME-tools.
tools() {
    python3 -c 'import ensurepip' 2>/dev/null || install "tools written in Python" python3 python3-venv
    folder=${CARGO_TARGET_DIR:-target}/$1-tools
    cmp -s "$2" "$folder/installed.txt" && return
    echo "setup: installing the packages of $2 into $folder"
    python3 -m venv --clear "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$2" ||
        stop "could not install $2; is the network there? Then run: scripts/setup.sh $1"
    cp "$2" "$folder/installed.txt"
}

# The tools that build and check the packages.
set_up_dist() {
    have dpkg-deb objdump || install "making the packages" dpkg binutils
    tools dist crates/quarrier-python/requirements-dist.txt
}

# The tools that build the documentation's site.
set_up_docs() {
    tools docs docs/requirements.txt
}

for group in "$@"; do
    case $group in
        rust) set_up_rust ;;
        arm) set_up_arm ;;
        image) set_up_image ;;
        gpu) set_up_gpu ;;
        python) set_up_python ;;
        serve) set_up_serve ;;
        c) set_up_c ;;
        dist) set_up_dist ;;
        docs) set_up_docs ;;
        *) stop "unknown group '$group'; known: rust image gpu python serve c dist docs" ;;
    esac
done
