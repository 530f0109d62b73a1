"""Random operations against a dict from offset to byte."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import quarrier
from quarrier import SparseFile

SPACE = 120
OFFSETS = st.integers(0, SPACE)
LENGTHS = st.integers(0, 40)


class Model:
    """The oracle: the byte at each offset."""

    def __init__(self, on_conflict: str) -> None:
        self.held: dict[int, int] = {}
        self.on_conflict = on_conflict

    def conflict(self, offset: int, data: bytes) -> int | None:
        for at, byte in enumerate(data, offset):
            if self.held.get(at, byte) != byte:
                return at
        return None

    def write(self, offset: int, data: bytes) -> int:
        new = sum(at not in self.held for at in range(offset, offset + len(data)))
        self.held.update(enumerate(data, offset))
        return new

    def need(self, offset: int, length: int) -> list[tuple[int, int]]:
        return runs(at for at in range(offset, offset + length) if at not in self.held)

    def blocks(self) -> list[tuple[int, int]]:
        return runs(sorted(self.held))


def runs(offsets) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for at in offsets:
        if found and sum(found[-1]) == at:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((at, 1))
    return found


class Pair:
    """The file and its model, compared after every operation."""

    def __init__(self, on_conflict: str, base: int) -> None:
        self.file = SparseFile("model", on_conflict=on_conflict)  # type: ignore[arg-type]
        self.model = Model(on_conflict)
        self.base = base

    def at(self, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return [(offset + self.base, length) for offset, length in ranges]

    def write(self, offset: int, data: bytes) -> None:
        conflict = self.model.conflict(offset, data)
        if conflict is not None and self.model.on_conflict == "raise":
            try:
                self.file.write(offset + self.base, data)
            except quarrier.ConflictError as error:
                assert error.offset == conflict + self.base
                assert error.held == self.model.held[conflict]
                return
            raise AssertionError("a conflict was not noticed")
        assert self.file.write(offset + self.base, data) == self.model.write(offset, data)

    def read(self, offset: int, length: int) -> None:
        missing = self.model.need(offset, length)
        assert self.file.has(offset + self.base, length) == (not missing)
        assert self.file.need(offset + self.base, length) == self.at(missing)
        try:
            data = self.file.read(offset + self.base, length)
        except quarrier.NotHeldError as error:
            assert error.missing == self.at(missing)[0]
        else:
            assert not missing
            assert data == bytes(self.model.held[at] for at in range(offset, offset + length))

    def erase(self, offset: int, length: int) -> None:
        gone = [
            at for at in range(offset, offset + length) if self.model.held.pop(at, None) is not None
        ]
        assert self.file.erase(offset + self.base, length) == len(gone)

    def evict(self, most: int) -> None:
        gone = self.file.evict(most)
        assert gone == max(0, len(self.model.held) - most)
        kept = {
            at - self.base
            for offset, length in self.file.blocks()
            for at in range(offset, offset + length)
        }
        assert kept <= self.model.held.keys()
        self.model.held = {at: self.model.held[at] for at in kept}

    def need_many(self, ranges: list[tuple[int, int]]) -> None:
        wanted = {at for offset, length in ranges for at in range(offset, offset + length)}
        missing = self.at(runs(sorted(wanted - self.model.held.keys())))
        assert self.file.need_many(self.at(ranges)) == missing
        offsets, lengths = self.file.need_many_arrays(
            np.array([offset + self.base for offset, _ in ranges], "u8"),
            np.array([length for _, length in ranges], "u8"),
        )
        assert list(zip(offsets.tolist(), lengths.tolist(), strict=True)) == missing

    def read_many(self, ranges: list[tuple[int, int]]) -> None:
        offsets = np.array([offset + self.base for offset, _ in ranges], "u8")
        lengths = np.array([length for _, length in ranges], "u8")
        expected = b""
        for offset, length in ranges:
            missing = self.model.need(offset, length)
            if missing:
                with pytest.raises(quarrier.NotHeldError) as caught:
                    self.file.read_many(offsets, lengths)
                assert caught.value.missing == self.at(missing)[0]
                return
            expected += bytes(self.model.held[at] for at in range(offset, offset + length))
        data, starts = self.file.read_many(offsets, lengths)
        assert data.tobytes() == expected
        assert (np.diff(starts) == lengths.astype("i8")).all()

    def store_and_load(self) -> None:
        self.file = pickle.loads(pickle.dumps(self.file))

    def check(self) -> None:
        assert self.file.blocks() == self.at(self.model.blocks())
        assert self.file.num_bytes() == len(self.model.held)
        assert self.file.num_blocks() == len(self.model.blocks())


RANGES = st.lists(st.tuples(OFFSETS, LENGTHS), max_size=6)
OPERATIONS = st.one_of(
    st.tuples(st.just("write"), OFFSETS, st.binary(max_size=40)),
    # Mostly the same byte, so that writes agree with the held bytes.
    st.tuples(st.just("write"), OFFSETS, LENGTHS.map(lambda length: b"x" * length)),
    st.tuples(st.just("read"), OFFSETS, LENGTHS),
    st.tuples(st.just("erase"), OFFSETS, LENGTHS),
    st.tuples(st.just("evict"), st.integers(0, SPACE)),
    st.tuples(st.just("need_many"), RANGES),
    st.tuples(st.just("read_many"), RANGES),
    st.tuples(st.just("store_and_load")),
)


@settings(max_examples=400)
@given(
    st.sampled_from(["raise", "replace"]),
    st.sampled_from([0, 2**32 - 60, 2**63 - 60, 2**64 - 200]),
    st.lists(OPERATIONS, max_size=40),
)
def test_a_file_is_a_map_from_offset_to_byte(on_conflict, base, operations) -> None:
    pair = Pair(on_conflict, base)
    for name, *arguments in operations:
        getattr(pair, name)(*arguments)
        pair.check()


def test_a_long_run_of_random_operations_agrees_with_the_map() -> None:
    run(100_000, seed=20261122)


def run(operations: int, seed: int) -> None:
    random_of = random.Random(seed)
    pair = Pair("replace", 10**12)
    for _ in range(operations):
        offset, length = random_of.randrange(3000), random_of.randrange(60)
        match random_of.randrange(100):
            case n if n < 45:
                pair.write(offset, random_of.choice([b"x", b"y", b"zz"]) * length)
            case n if n < 80:
                pair.read(offset, length)
            case n if n < 97:
                pair.erase(offset, length)
            case 97:
                pair.evict(random_of.randrange(3000))
            case 98:
                pair.store_and_load()
            case _:
                pair.need_many([(offset, length), (random_of.randrange(3000), 100)])
                pair.check()
    pair.check()
