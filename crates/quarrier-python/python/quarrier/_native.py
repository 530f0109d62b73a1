"""The native half of the package: the one of quarrier-sql if installed, else the light one.

Both have the same classes and functions. All of them come from one module, so that the engine that
answers statements accepts a caller's tables.
"""

from __future__ import annotations

import sys

from quarrier._version import __version__

try:
    from quarrier_sql import _native as _chosen
except ModuleNotFoundError as error:
    if error.name != "quarrier_sql":
        raise
    from quarrier import _light as _chosen

if _chosen.__version__ != __version__:
    raise ImportError(
        f"quarrier has version {__version__}, but its native half {_chosen.__version__}; run "
        f"pip install 'quarrier[sql]=={__version__}'"
    )

sys.modules[__name__] = _chosen
