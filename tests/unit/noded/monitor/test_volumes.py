"""Logical volumes, from what LVM 2.03.16 has written to what Ganeti's agent would tell."""

import os
import time
from pathlib import Path
from typing import Any

import pytest

from common.errors import NodeFailure
from noded.monitor.reports import answer
from noded.monitor.sight import Sight
from noded.monitor.volumes import OLDEST_S, VolumeFile, parse_volumes

SAMPLE = (Path(__file__).parent / "lvs-2.03.16.json").read_bytes()


def test_each_segment_is_told_as_ganetis_agent_tells_it() -> None:
    sight = Sight(volumes=parse_volumes(SAMPLE))
    report = answer("/1/report/storage/lv", sight, 7)
    assert {name: value for name, value in report.items() if name != "data"} == {
        "name": "lv", "version": "B", "format_version": 1, "timestamp": 7, "category": "storage",
        "kind": 0,
    }  # fmt: skip
    assert report["data"][0] == {
        "uuid": "XgzNc8-UvpI-ehse-lj9L-yd0k-gttb-aaw1Ll",
        "name": "11111111-1111-4111-8111-111111111111.disk0_data",
        "attr": "-wi-XX----",
        "major": -1, "minor": -1, "kernel_major": -1, "kernel_minor": -1,
        "size": 8 << 20, "seg_count": 1, "tags": "gantry.test", "modules": "",
        "vg_uuid": "cb7v5f-crNH-Pk1t-FO1b-9N3R-HALq-mjfKu9", "vg_name": "xenvg",
        "segtype": "linear", "seg_start": 0, "seg_start_pe": 0, "seg_size": 8 << 20,
        "seg_tags": "", "seg_pe_ranges": "/dev/loop0:0-1", "devices": "/dev/loop0(0)",
        "instance": None,
    }  # fmt: skip
    assert [row["name"] for row in report["data"][1:]] == ["third"]
    assert ["lv", "storage", 0] in answer("/1/list/collectors", sight, 7)


def test_where_nobody_writes_them_down_there_is_no_such_report() -> None:
    with pytest.raises(KeyError):
        answer("/1/report/storage/lv", Sight(), 7)
    assert answer("/1/report/storage/lv", Sight(volumes=()), 7)["data"] == []


@pytest.mark.parametrize(
    "text",
    [b"", SAMPLE[:400], b"[]", b"{}", b'{"report": [{}]}', b'{"report": [{"lv": [{}]}]}',
     SAMPLE.replace(b"8388608", b"8M"), b"\xff"],
)  # fmt: skip
def test_what_is_not_whole_or_something_else_is_not_understood(text: bytes) -> None:
    with pytest.raises(NodeFailure, match="Cannot understand what LVM has reported"):
        parse_volumes(text)


def test_the_file_is_read_when_it_has_changed_and_kept_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "volumes.json"
    file = VolumeFile(path)

    def names() -> list[Any] | None:
        volumes = file.read()
        return None if volumes is None else [volume["name"] for volume in volumes]

    assert names() is None
    path.write_bytes(SAMPLE[:300])
    assert names() is None, "half of it is nothing"
    path.write_bytes(SAMPLE)
    assert names() == ["11111111-1111-4111-8111-111111111111.disk0_data", "third"]
    path.write_bytes(SAMPLE[:300])
    assert names() == ["11111111-1111-4111-8111-111111111111.disk0_data", "third"]
    path.write_bytes(b'{"report": [{"lv": []}]}')
    assert names() == []
    old = time.time() - OLDEST_S - 1
    os.utime(path, (old, old))
    assert names() is None, "it would be told as if it were so now"


def test_volumes_are_not_told_for_ever_when_lvm_fails_and_leaves_half_a_file_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "volumes.json"
    path.write_bytes(SAMPLE)
    begin = path.stat().st_mtime
    file = VolumeFile(path)
    assert file.read()
    for later_s, is_told in ((OLDEST_S - 1, True), (OLDEST_S + 1, False)):
        path.write_bytes(b"")
        os.utime(path, (begin + later_s, begin + later_s))
        monkeypatch.setattr("noded.monitor.volumes.time.time", lambda: begin + later_s)  # noqa: B023
        assert bool(file.read()) == is_told
    path.write_bytes(SAMPLE)
    os.utime(path, (begin + OLDEST_S + 2, begin + OLDEST_S + 2))
    assert file.read(), "LVM answers again"
