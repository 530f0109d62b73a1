#!/bin/sh
# Builds the Python packages into .venv and tests them: python.sh build|test|check
# 'check' runs formatting, lints and types. Run scripts/setup.sh python first.
# python.sh test-free-threaded PYTHON: builds a wheel for this free-threaded interpreter, into
# target/free-threaded, and tests it there.
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
    built=$(cd "${CARGO_TARGET_DIR:-target}/debug" && pwd)
    ln -sf "$built/libquarrier_sql_native.so" crates/quarrier-python-sql/python/quarrier_sql/_native.abi3.so
}

# Tests that need no package without wheels for free-threaded interpreters, such as numba, pandas and polars.
test_free_threaded() {
    python=$(command -v "$1") || {
        echo "python: there is no $1; a free-threaded interpreter is needed, such as python3.14t" >&2
        exit 1
    }
    "$python" -c 'import sys, sysconfig
sys.exit(sys.version_info < (3, 14) or not sysconfig.get_config_var("Py_GIL_DISABLED"))' || {
        echo "python: $1 is not free-threaded Python 3.14 or newer; give the path of one, such as python3.14t" >&2
        exit 1
    }
    folder=${CARGO_TARGET_DIR:-target}/free-threaded
    rm -rf "$folder"
    mkdir -p "$folder"
    folder=$(cd "$folder" && pwd)
    # The stable ABI does not exist for it: PyO3 and maturin then build for this version alone.
    (cd crates/quarrier-python && maturin build --locked --quiet --interpreter "$python" --out "$folder" >/dev/null)
    "$python" -m venv "$folder/venv"
    "$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
        -r crates/quarrier-python/requirements-free-threaded.txt "$folder"/quarrier-*.whl
    cd crates/quarrier-python
    PATH=$folder/venv/bin:$PATH VIRTUAL_ENV=$folder/venv
    python -m pytest --without-sql tests/test_free_threaded.py tests/test_interrupt.py tests/test_open.py tests/test_search.py \
        tests/test_sparse_*.py tests/test_store.py tests/test_table.py
    # In a process without other threads, where workers are forked.
    python -m pytest --without-sql -k 'not numba' tests/test_parallel_array.py tests/test_parallel_faults.py \
        tests/test_parallel_process.py tests/test_parallel_re*.py tests/test_parallel_scan.py \
        tests/test_parallel_state.py tests/test_parallel_submit.py
}

[ "${1:-}" != test-free-threaded ] || [ $# -ne 2 ] || {
    test_free_threaded "$2"
    exit
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
        echo "usage: python.sh build|test|check, or python.sh test-free-threaded PYTHON" >&2
        exit 2
        ;;
esac
