"""What the agent tells, and at which paths: those of Ganeti's monitoring agent, version 1; pure.

A collector whose source cannot be read here is not there at all.

Source: Monitoring/Server.hs and DataCollectors/ of Ganeti 3.0; the programs that read it are
``hail``, ``hbal`` and others with ``--mond``, Ganeti's and ours.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from noded.monitor.disk_statistics import Disk
from noded.monitor.mirrors import Mirror, Sync
from noded.monitor.sight import Sight

PROTOCOL = 1

_PERFORMANCE, _STATUS = 0, 1  # kinds of collectors: of figures; of figures with a verdict on them
_NO_CATEGORY = "default"  # in paths and lists

_FINE, _HEALS, _UNKNOWN, _BAD = 0, 1, 2, 4
_VERDICTS: Mapping[str, tuple[int, str]] = {
    "StandAlone": (_BAD, "it does not look for its peer"),
    "Disconnecting": (_BAD, "it is leaving its peer"),
    "TearDown": (_BAD, "its peer is leaving"),
    **dict.fromkeys(
        ("Unconnected", "WFConnection", "WFReportParams"), (_HEALS, "it is connecting")
    ),
    **dict.fromkeys(
        ("Timeout", "BrokenPipe", "NetworkFailure", "ProtocolError"),
        (_HEALS, "it has lost its peer"),
    ),
    **dict.fromkeys(
        ("Connected", "StartingSyncS", "StartingSyncT", "WFBitMapS", "WFBitMapT", "WFSyncUUID",
         "SyncSource", "SyncTarget", "PausedSyncS", "PausedSyncT", "VerifyS", "VerifyT", "Ahead",
         "Behind", "Unconfigured"),
        (_FINE, ""),
    ),
}  # fmt: skip
_COUNTERS: Mapping[str, str] = {
    "ns": "networkSend", "nr": "networkReceive", "dw": "diskWrite", "dr": "diskRead",
    "al": "activityLog", "bm": "bitMap", "lo": "localCount", "pe": "pending",
    "ua": "unacknowledged", "ap": "applicationPending", "ep": "epochs", "oos": "outOfSync",
}  # fmt: skip
_UNITS = {"K": "KiloByte", "M": "MegaByte"}
_DISK = (
    "major", "minor", "name", "readsNum", "mergedReads", "secRead", "timeRead", "writes",
    "mergedWrites", "secWritten", "timeWrite", "ios", "timeIO", "wIOmillis",
)  # fmt: skip


class Collector(NamedTuple):
    """``data`` returns what is told; None if there is nothing to tell of."""

    name: str
    category: str | None
    kind: int
    data: Callable[[Sight], Any]


def answer(path: str, sight: Sight, now_ns: int) -> Any:
    """Return the JSON document at a path.

    Args:
        path: of the request, without its query.
        sight: what is to be told.
        now_ns: nanoseconds since 1970.

    Raises:
        KeyError: there is none.
    """
    there = [(each, data) for each in COLLECTORS if (data := each.data(sight)) is not None]
    match path.rstrip("/").split("/"):
        case [""]:
            return [PROTOCOL]
        case ["", "1"]:
            return None
        case ["", "1", "list", "collectors"]:
            return [[each.name, each.category or _NO_CATEGORY, each.kind] for each, _ in there]
        case ["", "1", "report", "all"]:
            return [_report(each, data, now_ns) for each, data in there]
        case ["", "1", "report", category, name]:
            by_place = {(each.category or _NO_CATEGORY, each.name): each for each, _ in there}
            found = by_place[category, name]
            return _report(found, found.data(sight), now_ns)
        case _:
            raise KeyError(path)


def _report(collector: Collector, data: Any, now_ns: int) -> dict[str, Any]:
    return {
        "name": collector.name,
        "version": "B",  # part of the agent
        "format_version": 1,
        "timestamp": now_ns,
        "category": collector.category,
        "kind": collector.kind,
        "data": data,
    }


def _cpu(sight: Sight) -> Any:
    load = sight.load
    return {"cpu_number": len(load.each), "cpus": load.each, "cpu_total": load.total}


def _disks(sight: Sight) -> Any:
    def told(disk: Disk) -> dict[str, Any]:
        return dict(zip(_DISK, disk, strict=True))

    return None if sight.disks is None else [told(disk) for disk in sight.disks]


def _volumes(sight: Sight) -> Any:
    unknown = {"instance": None}  # the agent knows of no instances
    return None if sight.volumes is None else [each | unknown for each in sight.volumes]


def _drbd(sight: Sight) -> Any:
    mirrors = sight.mirrors
    if mirrors is None:
        return None
    module = {"version": mirrors.version, "api": mirrors.api, "proto": mirrors.protocol}
    if mirrors.source is not None:
        module["srcversion"] = mirrors.source
    verdicts = [_verdict(device) for device in mirrors.devices]
    code = max((code for code, _ in verdicts), default=_FINE)
    message = "\n".join(text for _, text in verdicts if text)
    return {
        "status": {"code": code, "message": message},
        "versionInfo": module,
        "deviceInfos": [_device(device) for device in mirrors.devices],
    }


def _verdict(device: Mirror) -> tuple[int, str]:
    unknown = (_UNKNOWN, f"its connection is {device.connection}")
    code, text = _VERDICTS.get(device.connection, unknown)
    return code, f"{device.minor}: {text}" if text else ""


def _device(device: Mirror) -> dict[str, Any]:
    told: dict[str, Any] = {"minor": device.minor, "connectionState": device.connection}
    if not device.is_configured:
        return told
    figures: dict[str, Any] = {
        name: device.counters[ours] for ours, name in _COUNTERS.items() if ours in device.counters
    }
    if device.order is not None:
        figures["writeOrder"] = device.order
    told |= {
        "localRole": device.roles[0],
        "remoteRole": device.roles[1],
        "localState": device.disks[0],
        "remoteState": device.disks[1],
        "replicationProtocol": device.protocol,
        "ioFlags": device.flags,
        "perfIndicators": figures,
        "instance": None,  # the agent knows of no instances
    }
    if device.sync is not None:
        told["syncStatus"] = _sync(device.sync)
    return told


def _sync(sync: Sync) -> dict[str, Any]:
    told: dict[str, Any] = {
        "percentage": sync.percent,
        "progress": f"{sync.rest}/{sync.whole}",
        "progressUnit": _UNITS[sync.unit],
    }
    if sync.finish is not None:
        hours, minutes, seconds = sync.finish
        told["timeToFinish"] = f"{hours:02}:{minutes:02}:{seconds:02}"
    if sync.speed_kib is not None:
        told |= {"speed": sync.speed_kib, "speedUnit": "KiloByte/Second"}
    if sync.wanted_kib is not None:
        told["want"] = sync.wanted_kib
    return told


COLLECTORS = (
    Collector("cpu-avg-load", None, _PERFORMANCE, _cpu),
    Collector("diskstats", "storage", _PERFORMANCE, _disks),
    Collector("drbd", "storage", _STATUS, _drbd),
    Collector("lv", "storage", _PERFORMANCE, _volumes),
)
