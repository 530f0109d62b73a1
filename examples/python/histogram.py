"""Counts the occurrences of each byte in a disk image: histogram.py [IMAGE or URL]"""

from __future__ import annotations

import os
import sys
import tempfile

import numpy as np
import numpy.typing as npt

from quarrier import parallel


def histogram(chunk: npt.NDArray[np.uint8], offset: int) -> npt.NDArray[np.int64]:
    """The counts of one chunk."""
    return np.bincount(chunk, minlength=256)


def main() -> None:
    """Returns the image, or a source of zeros, text and random bytes if none is given."""
    if len(sys.argv) > 1:
        report(sys.argv[1])
        return
    with tempfile.NamedTemporaryFile(suffix=".img") as image:
        image.write(bytes(3_000_000) + b"quarry " * 500_000 + os.urandom(2_000_000))
        image.flush()
        counts = report(image.name)
    assert counts.sum() == 8_500_000
    assert counts[ord("q")] >= 500_000


def report(source: str) -> npt.NDArray[np.int64]:
    """Reads the source once, and prints the most frequent bytes."""
    counts: npt.NDArray[np.int64] = parallel.scan(source, histogram, reduce=np.add)
    print(f"{source}: {counts.sum():,} bytes")
    for byte in np.argsort(counts)[:-6:-1]:
        print(f"  {byte:02x} {counts[byte]:>12,}  {counts[byte] / counts.sum():6.1%}")
    return counts


if __name__ == "__main__":
    main()
