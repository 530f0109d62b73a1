#!/bin/sh
# The documentation: docs.sh site|snippets
# 'site' checks the generated pages, builds target/docs and checks its links; run scripts/setup.sh docs first.
# 'snippets' runs the examples of the pages with the programs in target/debug, and Python if .venv has the
# package (scripts/python.sh build).
set -eu

cd "$(dirname "$0")/.."
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)

case "$*" in
    site)
        tools=$target/docs-tools/bin/python
        [ -x "$tools" ] || {
            echo "docs: the tools are missing; run: scripts/setup.sh docs" >&2
            exit 1
        }
        failed=0
        python3 scripts/python_api.py --check || failed=1
        python3 benchmarks/python/rivals.py --check || failed=1
        rm -rf "$target/docs"
        "$tools" scripts/site.py "$target/docs" || failed=1
        exit "$failed"
        ;;
    snippets)
        [ -x "$target/debug/quarrier-sql" ] || {
            echo "docs: there are no programs in $target/debug; run: cargo build --workspace --bins" >&2
            exit 1
        }
        PATH=$target/debug:$PATH
        PYTHONPATH=$PWD/crates/quarrier-python-sql/python
        export PATH PYTHONPATH
        python=$PWD/.venv/bin/python
        if [ -x "$python" ] && "$python" -c 'import quarrier' 2>/dev/null; then
            "$python" scripts/snippets.py --python README.md docs/*.md docs/tutorials/*.md
        else
            echo "docs: Python is skipped, because .venv does not have the package"
            python3 scripts/snippets.py README.md docs/*.md docs/tutorials/*.md
        fi
        ;;
    *)
        echo "usage: docs.sh site|snippets" >&2
        exit 2
        ;;
esac
