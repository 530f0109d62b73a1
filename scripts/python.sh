#!/bin/sh
# Builds the Python packages into .venv and tests them: python.sh build|test|check
# 'check' runs formatting, lints and types. Run scripts/setup.sh python first.
set -eu

cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH:$HOME/.cargo/bin"
VIRTUAL_ENV=$PWD/.venv
export PATH VIRTUAL_ENV
unset CONDA_PREFIX PYTHONHOME PYTHONPATH

[ -x "$VIRTUAL_ENV/bin/maturin" ] || {
    echo "python: there is no .venv; run: scripts/setup.sh python" >&2
    exit 1
}

# Builds quarrier, without the engine for all of SQL.
build() {
    # A module of an old build with this name would be imported first.
    rm -f crates/quarrier-python/python/quarrier/_native.*.so
    (cd crates/quarrier-python && maturin develop --locked --quiet >/dev/null)
}

# Builds quarrier-sql, which is only on PYTHONPATH, so that tests can run without it. It is built like the
# tests of the workspace: maturin would build DataFusion again with other features. The programs that tests
# run are built with it.
build_sql() {
    cargo build --quiet --workspace --locked --lib --bins --test questions
    cargo build --quiet --locked --manifest-path crates/quarrier-cluster/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}"
    built=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
    ln -sf "$built/libquarrier_sql_native.so" crates/quarrier-python-sql/python/quarrier_sql/_native.abi3.so
}

case "$*" in
    build)
        build
        build_sql
        ;;
    test)
        build
        build_sql
        cd crates/quarrier-python
        python -m pytest --without-sql tests/test_table*.py tests/test_questions.py tests/test_version.py
        PYTHONPATH=$PWD/../quarrier-python-sql/python
        export PYTHONPATH
        # Workers are forked only in a process without other threads, so their tests run in a separate
        # process.
        python -m pytest --ignore-glob='*/test_parallel_*.py'
        python -m pytest tests/test_parallel_*.py
        ;;
    check)
        build
        cd crates/quarrier-python
        failed=0
        ruff format --check . ../quarrier-python-sql ../../benchmarks/python ../../examples ../../fuzz ../../scripts ../../docs/conf.py || failed=1
        ruff check --no-cache . ../quarrier-python-sql ../../benchmarks/python ../../examples ../../fuzz ../../scripts ../../docs/conf.py || failed=1
        mypy || failed=1
        python -m mypy.stubtest --mypy-config-file pyproject.toml quarrier || failed=1
        exit "$failed"
        ;;
    *)
        echo "usage: python.sh build|test|check" >&2
        exit 2
        ;;
esac
