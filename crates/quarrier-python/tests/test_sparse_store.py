"""SparseStore."""

from __future__ import annotations

import copy
import pickle

import pytest

import quarrier
from quarrier import SparseFile, SparseStore


def test_files_are_found_by_name() -> None:
    store = SparseStore()
    for name in ("b", "a"):
        store.insert(SparseFile(name))
    assert (store.ids(), list(store), len(store)) == (["a", "b"], ["a", "b"], 2)
    assert "a" in store and "c" not in store
    assert store.get("c") is None
    assert store["a"].id == "a"
    with pytest.raises(KeyError) as caught:
        store["c"]
    assert isinstance(caught.value, quarrier.UnknownFileError)
    assert caught.value.id == "c"
    assert repr(store) == "<quarrier.SparseStore: 0 bytes in 2 files>"


def test_a_file_put_in_is_that_of_the_store() -> None:
    store = SparseStore()
    file = SparseFile("x")
    file.write(0, b"abc")
    store.insert(file)
    assert store["x"].read(0, 3) == b"abc"
    file.write(3, b"def")
    assert store["x"].read(0, 6) == b"abcdef"
    store["x"].write(6, b"g")
    assert file.num_bytes() == store.num_bytes() == 7
    assert file.read_many([1, 5], [2, 2])[0].tobytes() == b"bcfg"
    assert file.need(0, 10) == [(7, 3)]


def test_a_name_is_unique_and_a_refused_file_keeps_its_bytes() -> None:
    store = SparseStore()
    store.insert(SparseFile("x"))
    other = SparseFile("x")
    other.write(0, b"mine")
    with pytest.raises(quarrier.DuplicateFileError) as caught:
        store.insert(other)
    assert caught.value.id == "x"
    assert other.read(0, 4) == b"mine"
    with pytest.raises(ValueError, match="in a store already"):
        SparseStore().insert(store["x"])


def test_all_files_together_keep_the_budget() -> None:
    store = SparseStore(1000)
    for name in "abc":
        store.insert(SparseFile(name))
        store[name].write(0, bytes(400))
    assert store.num_bytes() <= 1000
    assert store["c"].num_bytes() == 400, "what was used last stays"
    store["c"].write(400, bytes(100_000))
    assert store.num_bytes() <= 1000
    assert store.evict(10) == 990
    assert store.bytes_max == 1000


def test_a_removed_file_stays_usable() -> None:
    store = SparseStore(10)
    store.insert(SparseFile("x"))
    file = store.remove("x")
    file.write(0, bytes(100))
    assert (file.num_bytes(), store.num_bytes(), len(store)) == (100, 0, 0)
    with pytest.raises(quarrier.UnknownFileError):
        store.remove("x")


def test_a_store_survives_being_stored() -> None:
    store = SparseStore(1 << 20)
    for name in "ab":
        store.insert(SparseFile(name, etag=name))
        store[name].write(5, name.encode())
    for again in (pickle.loads(pickle.dumps(store)), copy.deepcopy(store)):
        assert again.ids() == ["a", "b"]
        assert again["b"].read(5, 1) == b"b"
        assert again.bytes_max == 1 << 20
    with pytest.raises(quarrier.CorruptError):
        SparseStore.from_bytes(b"nonsense")


def test_a_pin_holds_against_the_budget() -> None:
    store = SparseStore(100)
    store.insert(SparseFile("x"))
    file = store["x"]
    file.write(0, bytes(50))
    file.pin(0, 50)
    file.write(1000, bytes(500))
    assert file.has(0, 50)
    file.unpin(0, 50)
