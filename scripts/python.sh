#!/bin/sh
# Builds the Python package into .venv and tests it: python.sh build|test|check
# 'check' is its formatting, lints and types. scripts/setup.sh python comes first.
set -eu

cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH:$HOME/.cargo/bin"
VIRTUAL_ENV=$PWD/.venv
export PATH VIRTUAL_ENV
unset CONDA_PREFIX PYTHONHOME PYTHONPATH

cd crates/quarrier-python
[ -x "$VIRTUAL_ENV/bin/maturin" ] || {
    echo "python: there is no .venv; run: scripts/setup.sh python" >&2
    exit 1
}

build() {
    maturin develop --locked --quiet >/dev/null
}

case "$*" in
    build) build ;;
    test)
        build
        # What draws the random questions; 'make test' has built it.
        (cd ../.. && cargo test --quiet --workspace --locked --no-run --test questions)
        # Workers are forked only where a process has no other threads: theirs is another one.
        python -m pytest --ignore-glob='*/test_parallel_*.py'
        python -m pytest tests/test_parallel_*.py
        ;;
    check)
        build
        failed=0
        ruff format --check . ../../benchmarks/python ../../examples/python || failed=1
        ruff check . ../../benchmarks/python ../../examples/python || failed=1
        mypy || failed=1
        python -m mypy.stubtest --mypy-config-file pyproject.toml quarrier || failed=1
        exit "$failed"
        ;;
    *)
        echo "usage: python.sh build|test|check" >&2
        exit 2
        ;;
esac
