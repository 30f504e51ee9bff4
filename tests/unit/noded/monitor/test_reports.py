"""The agent tells in Ganeti's words what it sees of a node."""

from pathlib import Path
from typing import Any

import pytest

from common.errors import NodeFailure
from common.exposition import exposition
from noded.monitor.cpu_load import Load
from noded.monitor.disk_statistics import own_disks, parse_diskstats
from noded.monitor.metrics import node_figures
from noded.monitor.mirrors import parse_drbd
from noded.monitor.reports import answer
from noded.monitor.sight import Eyes, Sight
from noded.monitor.volumes import VolumeFile

DISKSTATS = """\
   7       0 loop0 5262 164 139504 8382 61072 87090 2700913 104934 0 68736 170571 7 0 5939224 22 1 2
 259       0 nvme0n1 10 1 80 5 20 2 160 9 0 12 14 0 0 0 0 3 4
 259       1 nvme0n1p1 10 1 80 5 20 2 160 9 0 12 14 0 0 0 0 0 0
   8       0 sda 1 2 3 4 5 6 7 8 9 10 11
 253       0 dm-0 1 2 3 4 5 6 7 8 9 10 11
   8       1 sda1 1 2 3 4 5 6 7 8 9 10 11
 147       0 drbd0 1 2 3 4 5 6 7 8 9 10 11
"""
DRBD = """\
version: 8.4.11 (api:1/proto:86-101)
srcversion: 211FB288A383ED945B83420 
 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----
    ns:10 nr:0 dw:10 dr:2077 al:1 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0
 1: cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent C r-----
    ns:57344 nr:0 dw:0 dr:57344 al:0 bm:3 lo:0 pe:2 ua:0 ap:0 ep:1 wo:f oos:991232
\t[>...................] sync'ed:  5.8% (991232/1048576)K
\tfinish: 0:01:26 speed: 11,468 (11,468) K/sec
 2: cs:Unconfigured
 4: cs:WFConnection ro:Secondary/Unknown ds:UpToDate/DUnknown C r-----
    ns:0 nr:0 dw:0 dr:0 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:d oos:8
"""  # noqa: W291 -- as the module writes it


def seen(folder: Path, **files: str) -> Sight:
    for name, text in files.items():
        (folder / name).write_text(text)
    return Eyes(folder, VolumeFile(folder / "volumes.json")).look(Load(0.5, (0.25, 0.25)))


def test_collectors_are_listed_by_name_category_and_kind(tmp_path: Path) -> None:
    listed = answer("/1/list/collectors", seen(tmp_path, diskstats=DISKSTATS, drbd=DRBD), 1)
    assert listed == [
        ["cpu-avg-load", "default", 0], ["diskstats", "storage", 0], ["drbd", "storage", 1],
    ]  # fmt: skip


def test_a_collector_without_a_source_is_not_there(tmp_path: Path) -> None:
    sight = seen(tmp_path)
    assert answer("/1/list/collectors", sight, 1) == [["cpu-avg-load", "default", 0]]
    assert [each["name"] for each in answer("/1/report/all", sight, 1)] == ["cpu-avg-load"]
    with pytest.raises(KeyError):
        answer("/1/report/storage/drbd", sight, 1)


def test_a_source_that_is_not_understood_harms_no_other(tmp_path: Path) -> None:
    sight = seen(tmp_path, diskstats="what is this\n", drbd="version: 9\n", loadavg="1 2 3 4 5\n")
    assert (sight.disks, sight.mirrors, sight.waiting) == (None, None, (1.0, 2.0, 3.0))


def test_every_listed_collector_has_a_report_where_the_list_says(tmp_path: Path) -> None:
    sight = seen(tmp_path, diskstats=DISKSTATS, drbd=DRBD)
    reports = answer("/1/report/all", sight, 17)
    for name, category, kind in answer("/1/list/collectors", sight, 17):
        report = answer(f"/1/report/{category}/{name}", sight, 17)
        assert report in reports
        assert (report["name"], report["kind"], report["timestamp"]) == (name, kind, 17)
        assert (report["category"] or "default") == category


@pytest.mark.parametrize("path", ["/2", "/1/report/default/drbd", "/1/report/storage", "/1/list"])
def test_there_is_nothing_at_other_paths(tmp_path: Path, path: str) -> None:
    with pytest.raises(KeyError):
        answer(path, seen(tmp_path, drbd=DRBD), 1)


def test_disks_are_told_in_all_columns_that_ganeti_knows(tmp_path: Path) -> None:
    told = answer("/1/report/storage/diskstats", seen(tmp_path, diskstats=DISKSTATS), 1)["data"]
    assert len(told) == 7
    assert told[1] == {
        "major": 259, "minor": 0, "name": "nvme0n1", "readsNum": 10, "mergedReads": 1,
        "secRead": 80, "timeRead": 5, "writes": 20, "mergedWrites": 2, "secWritten": 160,
        "timeWrite": 9, "ios": 0, "timeIO": 12, "wIOmillis": 14,
    }  # fmt: skip


@pytest.mark.parametrize("text", ["8 0 sda 1 2\n", "8 0 sda a b c d e f g h i j k\n", "8\n"])
def test_odd_statistics_of_disks_are_refused(text: str) -> None:
    with pytest.raises(NodeFailure, match="/proc/diskstats"):
        parse_diskstats(text)


def test_metrics_are_of_whole_disks_however_many_guests_have_some() -> None:
    ones = "1 " * 11
    guests = "".join(f"253 {n} dm-{n} {ones}\n147 {n} drbd{n} {ones}\n" for n in range(500))
    disks = own_disks(parse_diskstats(DISKSTATS + guests))
    assert [disk.name for disk in disks] == ["nvme0n1", "sda"]


def test_mirrors_are_told_with_the_worst_verdict_on_them(tmp_path: Path) -> None:
    told = answer("/1/report/storage/drbd", seen(tmp_path, drbd=DRBD), 1)["data"]
    assert told["status"] == {"code": 1, "message": "4: it is connecting"}
    assert told["versionInfo"] == {
        "version": "8.4.11", "api": "1", "proto": "86-101",
        "srcversion": "211FB288A383ED945B83420",
    }  # fmt: skip
    whole, copied, unused, alone = told["deviceInfos"]
    assert unused == {"minor": 2, "connectionState": "Unconfigured"}
    assert (alone["remoteRole"], alone["remoteState"]) == ("Unknown", "DUnknown")
    assert "syncStatus" not in whole
    assert whole["perfIndicators"]["diskRead"] == 2077
    assert whole["perfIndicators"]["writeOrder"] == "f"
    assert (copied["localState"], copied["remoteState"]) == ("UpToDate", "Inconsistent")
    assert copied["syncStatus"] == {
        "percentage": 5.8, "progress": "991232/1048576", "progressUnit": "KiloByte",
        "timeToFinish": "00:01:26", "speed": 11468, "speedUnit": "KiloByte/Second",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("connection", "code"),
    [("StandAlone", 4), ("WFConnection", 1), ("Connected", 0), ("Dreaming", 2)],
)
def test_the_verdict_on_a_mirror_follows_from_its_connection(
    tmp_path: Path, connection: str, code: int
) -> None:
    only = "".join(DRBD.splitlines(keepends=True)[:4]).replace("Connected", connection)
    told = answer("/1/report/storage/drbd", seen(tmp_path, drbd=only), 1)["data"]
    assert told["status"]["code"] == code


@pytest.mark.parametrize(
    "text", ["", "no version\n", "version: 8.4.11 (api:1/proto:86-101)\n 0: cs:Connected odd\n"]
)
def test_odd_words_of_drbd_are_refused(text: str) -> None:
    with pytest.raises(NodeFailure, match="/proc/drbd"):
        parse_drbd(text)


def figures(sight: Sight) -> dict[str, Any]:
    lines = exposition(node_figures(sight)).decode().splitlines()
    return {
        name: float(value)
        for name, _, value in (each.rpartition(" ") for each in lines if not each.startswith("#"))
    }


def test_metrics_tell_what_was_seen_in_bytes_and_seconds(tmp_path: Path) -> None:
    told = figures(
        seen(
            tmp_path, diskstats=DISKSTATS, drbd=DRBD, loadavg="0.5 1.5 2 3/400 5\n",
            meminfo="MemTotal:  100 kB\nMemAvailable: 60 kB\nHugePages_Total:  7\n",
        )
    )  # fmt: skip
    assert told["gantry_node_processors"] == 2
    assert told["gantry_node_processors_busy"] == 0.5
    assert told['gantry_node_load{minutes="15"}'] == 2
    assert told['gantry_node_memory_bytes{kind="MemAvailable"}'] == 61440
    assert told['gantry_node_disk_read_bytes_total{device="nvme0n1"}'] == 40960
    assert told['gantry_node_disk_busy_seconds_total{device="nvme0n1"}'] == 0.012
    assert told['gantry_node_drbd_devices{connection="Connected",disk="UpToDate"}'] == 1
    assert told["gantry_node_drbd_out_of_sync_bytes"] == 991240 * 1024


def test_the_share_of_resyncs_that_is_copied_follows_from_their_metrics(tmp_path: Path) -> None:
    large = """\
 5: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate C r-----
    ns:0 nr:7 dw:7 dr:0 al:0 bm:3 lo:0 pe:2 ua:0 ap:0 ep:1 wo:f oos:5242880
\t[=========>..........] sync'ed: 50.0% (5120/10240)M
"""
    told = figures(seen(tmp_path, drbd=DRBD + large))
    assert told["gantry_node_drbd_resync_bytes"] == (1024 + 10240) * 1024**2
    assert told["gantry_node_drbd_resync_left_bytes"] == (968 + 5120) * 1024**2


def test_nothing_is_resynced_where_devices_are_equal_or_not_connected(tmp_path: Path) -> None:
    lines = DRBD.splitlines(keepends=True)
    told = figures(seen(tmp_path, drbd="".join(lines[:4] + lines[8:])))
    assert told["gantry_node_drbd_out_of_sync_bytes"] == 8192
    assert told["gantry_node_drbd_resync_bytes"] == 0
    assert told["gantry_node_drbd_resync_left_bytes"] == 0


def test_what_cannot_be_read_has_no_figures(tmp_path: Path) -> None:
    assert {name.partition("{")[0] for name in figures(seen(tmp_path))} == {
        "gantry_monitor_info", "gantry_node_processors", "gantry_node_processors_busy",
    }  # fmt: skip
