"""Settings, options and fixtures that several test files share."""

from __future__ import annotations

import importlib.util
import signal

import hypothesis
import pytest

pytest.register_assert_rewrite("parallel_faults")

# The machine that runs the tests may be busy: a slow example is not a failure.
hypothesis.settings.register_profile("quarrier", deadline=None, derandomize=True)
hypothesis.settings.load_profile("quarrier")

# A job in a script's background ignores Ctrl-C, and all its children would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-sql", action="store_true", help="test the package without quarrier-sql"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sql: needs the package quarrier-sql")
    config.addinivalue_line("markers", "light: needs that quarrier-sql is not there")
    has_sql = importlib.util.find_spec("quarrier_sql") is not None
    if has_sql == config.getoption("--without-sql"):
        # Tests must not be skipped silently because a package is missing.
        said = "is installed despite --without-sql" if has_sql else "is missing: use --without-sql"
        raise pytest.UsageError(f"quarrier_sql {said}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = "sql" if config.getoption("--without-sql") else "light"
    kept = [item for item in items if item.get_closest_marker(left_out) is None]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept
