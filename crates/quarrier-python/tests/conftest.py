"""What several test files use."""

from __future__ import annotations

import signal

import hypothesis
import pytest

pytest.register_assert_rewrite("parallel_faults")

# The machine that runs the tests may be busy: an example that takes long is no failure.
hypothesis.settings.register_profile("quarrier", deadline=None, derandomize=True)
hypothesis.settings.load_profile("quarrier")

# A job that a script runs in the background ignores Ctrl-C, and so would all that it starts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
