"""Units: their rows together are those of the whole source, wherever they are searched."""

from __future__ import annotations

import os
import pathlib
import pickle

import pytest

import quarrier


@pytest.fixture
def image(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "image"
    path.write_bytes(b"needle".join([b"." * 997] * 40))
    return path


def test_units_together_have_the_rows_of_the_whole(image: pathlib.Path) -> None:
    patterns = {"word": "needle", "hex": quarrier.hex("65 65 ?? 6C")}
    expected = quarrier.search(image, patterns).to_pylist()
    units = quarrier.units(image, size="1K")
    assert [unit.start for unit in units] == list(range(0, image.stat().st_size, 1024))
    rows = []
    for unit in pickle.loads(pickle.dumps(units)):
        rows += quarrier.run(unit, patterns).to_pylist()
    assert rows == expected
    assert len(expected) == 78


def test_regexes_need_whole_sources(image: pathlib.Path) -> None:
    pattern = quarrier.regex(rb"[a-z]+")
    (whole,) = quarrier.units([image], size=None)
    assert len(quarrier.run(whole, pattern)) == 39
    with pytest.raises(quarrier.PlanError, match="size=None"):
        quarrier.run(quarrier.units(image, size=1000)[1], pattern)


def test_a_notice_of_the_source_is_a_warning(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "packed.lz"
    path.write_bytes(b"LZIP\x01 an invoice")
    (unit,) = quarrier.units(path)
    with pytest.warns(quarrier.SourceWarning, match=r"packed\.lz: is compressed by lzip"):
        assert len(quarrier.run(unit, "invoice")) == 1


def test_a_source_that_changed_is_an_error(image: pathlib.Path) -> None:
    unit = quarrier.units(image)[0]
    os.utime(image, (1, 1))
    with pytest.raises(quarrier.QuarrierError, match="changed since"):
        quarrier.run(unit, "needle")


def test_invalid_options_of_a_unit_are_refused(image: pathlib.Path) -> None:
    unit = quarrier.units(image)[0]
    with pytest.raises(TypeError, match="max_count"):
        quarrier.run(unit, "needle", max_count=1)
    with pytest.raises(TypeError, match="not 'str'"):
        quarrier.run(str(image), "needle")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        quarrier.units(image.with_name("none"))
