"""quarrier.gauge: readings, areas, errors."""

from __future__ import annotations

import pathlib

import pytest

import quarrier


def test_a_reading_has_its_measurement_runs_and_conditions(
    tmp_path: pathlib.Path,
) -> None:
    readings = quarrier.gauge("memory", quick=True, path=tmp_path)
    assert {reading.area for reading in readings} == {"memory"}
    for reading in readings:
        assert reading.value > 0
        assert reading.unit in ("B/s", "s", "op/s", "FLOP/s")
        assert reading.runs == len(reading.samples) >= 3
        assert reading.stddev >= 0
        assert reading.parameters["threads"] >= 1
        assert reading.parameters["block_bytes"] >= 1
        assert reading.parameters["access"] in ("sequential", "random")
        assert isinstance(reading.conditions["disturbed"], bool)
    distinct = {(reading.measurement, *sorted(reading.parameters.items())) for reading in readings}
    assert len(distinct) == len(readings)
    assert {reading.parameters["access"] for reading in readings} == {"sequential", "random"}
    assert list(tmp_path.iterdir()) == []


def test_a_sustained_rate_has_its_rates_over_time(tmp_path: pathlib.Path) -> None:
    try:
        readings = quarrier.gauge("disk", sustained=1, quick=True, path=tmp_path)
    except quarrier.PlanError as error:
        assert "has no O_DIRECT" in str(error)
        return
    assert [reading.measurement for reading in readings] == ["sustained write", "sustained read"]
    for reading in readings:
        assert reading.timeline is not None
        assert len(reading.timeline["rates"]) == 20
        assert reading.parameters["seconds"] == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seconds", [0, -1, 86_401, float("nan"), float("inf")])
def test_a_sustained_rate_takes_a_second_to_a_day(seconds: float) -> None:
    with pytest.raises(ValueError, match="from 1 to 86400 seconds"):
        quarrier.gauge("disk", sustained=seconds)


def test_a_sustained_rate_is_of_a_disk_alone() -> None:
    with pytest.raises(quarrier.PlanError, match="the area disk, and no other"):
        quarrier.gauge(sustained=5)
    with pytest.raises(quarrier.PlanError, match="10 s at most"):
        quarrier.gauge("disk", sustained=11, quick=True)


def test_an_unknown_area_is_refused() -> None:
    with pytest.raises(quarrier.PlanError, match=r"'tpu'.*cpu, memory, disk, network, gpu"):
        quarrier.gauge("tpu")


def test_a_disk_is_measured_in_a_folder_only(tmp_path: pathlib.Path) -> None:
    with pytest.raises(quarrier.PlanError, match="not a folder"):
        quarrier.gauge("disk", quick=True, path=tmp_path / "missing")
