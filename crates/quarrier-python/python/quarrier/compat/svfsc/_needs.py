"""How svfsc merges missing ranges."""

from __future__ import annotations

Ranges = list[tuple[int, int]]


def merged(ranges: Ranges, greedy: int) -> Ranges:
    """Extends each range to `greedy` bytes or more, and joins those it then overlaps or touches."""
    requests: Ranges = []
    for offset, length in ranges:
        if not requests or offset > sum(requests[-1]):
            requests.append((offset, max(length, greedy)))
            continue
        start = requests[-1][0]
        end = max(sum(requests[-1]), offset + length)
        requests[-1] = (start, end - start)
    return requests


def checked(seek_reads: object) -> Ranges:
    """Checks the argument of need_many, with the TypeErrors of svfsc."""
    name = "cp_SparseVirtualFile_need_many_internal"
    if not isinstance(seek_reads, list):
        raise TypeError(f"{name}: seek_reads is not a list.")
    for index, pair in enumerate(seek_reads):
        if not isinstance(pair, tuple):
            raise TypeError(f"{name}: seek_reads[{index}] is not a tuple.")
        if len(pair) != 2:
            length = len(pair)
            raise TypeError(
                f"{name}: seek_reads[{index}] length {length} is not a tuple of length 2."
            )
        if not all(hasattr(number, "__index__") for number in pair):
            raise TypeError(f"{name}: can not parse list element[{index}].")
    return seek_reads
