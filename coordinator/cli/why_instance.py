"""``gnt-instance why``: how an instance is, what works on it or waits, and what to do."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from common.durations import spoken
from common.luxi.client import Client
from common.model.template import DiskTemplate
from coordinator.cli.asking import ask
from coordinator.cli.cell import plain
from coordinator.cli.connection import connect
from coordinator.cli.names import full_names
from coordinator.cli.parser import Parser, add_json
from coordinator.cli.telling import tell
from coordinator.queries.instance_status import InstanceStatus

LATELY_S = 3600.0  # a job that failed so long ago explains what is so now
_FIELDS = (
    "name", "status", "admin_state", "pnode", "snodes", "disk_template", "guest_state", "maybe_on",
    "disk.findings", "forthcoming",
)  # fmt: skip
_JOB = ("id", "status", "ops", "summary", "waits", "end_ts", "opfailure")
_ENDED = ("success", "error", "canceled")
_HELD = "paused, as it was started so"
_LACKS_SPACE = "paused, as what it wrote found no room"

Row = Mapping[str, Any]


def why(command: str, words: Sequence[str]) -> int:
    """Tell it of each instance that is named."""
    parser = Parser(command, "Tell how instances are, what they wait for, and what to do.")
    parser.add_argument("names", nargs="+", metavar="INSTANCE", help="its name")
    add_json(parser)
    options = parser.parse_args(words)
    now = time.time()
    with connect() as client:
        names = full_names(client, "instance", options.names)
        condition = ["|", *(["==", "name", name] for name in names)]
        rows = {row["name"]: row for row in _rows(client, "instance", _FIELDS, condition)}
        settings = client.call("QueryConfigValues", ["watcher_pause", "drain_flag"])
        open_ones = ["&", *(["!=", "status", status] for status in _ENDED)]
        lately = ["|", open_ones, [">=", "end_ts", now - LATELY_S]]
        jobs = _rows(client, "job", _JOB, lately)
        locks = _rows(client, "lock", ("name", "owner", "pending"), None)
    for name in names:
        row = rows[name]
        mine = [job for job in jobs if job["id"] in _owners(locks, name) or _is_of(job, name)]
        sentences = [
            *_standing(row),
            *_jobs(mine, row, now),
            *_waits_for_watcher(row, mine, settings, now),
        ]
        numbers = [job["id"] for job in mine if job["status"] not in _ENDED]
        told = {"name": name, "status": row["status"], "why": sentences, "jobs": numbers}
        tell(options, told, *sentences)
    return 0


def _rows(client: Client, what: str, fields: Sequence[str], condition: Any) -> list[dict[str, Any]]:
    return ask(client, what, fields, condition).as_objects()


def _owners(locks: Sequence[Row], name: str) -> set[int]:
    """Return the jobs that hold the lock on an instance, or wait for it."""
    (lock, *_) = [each for each in locks if each["name"] == f"instance/{name}"] or [{}]
    waiting = (owner for _, owners in lock.get("pending") or () for owner in owners)
    words = (owner.split()[:2] for owner in (*(lock.get("owner") or ()), *waiting))
    return {int(pair[1]) for pair in words if pair[0] == "job"}


def _is_of(job: Row, name: str) -> bool:
    return any(
        name == op.get("instance_name") or name in (op.get("instances") or ()) for op in job["ops"]
    )


def _standing_of_running(name: str, node: str, guest_state: str | None) -> str:
    if guest_state == _LACKS_SPACE:
        return (
            f"Instance {name} stands still on {node}, as what it wrote found no room. Make "
            f"some where its disks are; “gnt-instance startup {name}” has it go on."
        )
    if guest_state == _HELD:
        return (
            f"Instance {name} stands still on {node}, as it was started paused; “gnt-instance "
            f"console {name}” or “gnt-instance startup {name}” has it run."
        )
    return f"Instance {name} runs on {node}, as it should."


def _standing(row: Row) -> Iterator[str]:
    """Say how it is, and what is to be done where nobody does it."""
    name, node = row["name"], row["pnode"]
    match InstanceStatus(row["status"]):
        case InstanceStatus.RUNNING:
            yield _standing_of_running(name, node, row["guest_state"])
        case InstanceStatus.ADMIN_DOWN if row["forthcoming"]:
            yield (
                f"Instance {name} is only reserved: its room is kept on {node}, and “gnt-instance "
                f"add --commit {name}” makes it."
            )
        case InstanceStatus.ADMIN_DOWN:
            yield (
                f"Instance {name} is stopped, as was ordered; “gnt-instance startup {name}” "
                "starts it."
            )
        case InstanceStatus.USER_DOWN:
            yield (
                f"Instance {name} was turned off from within, by its user; “gnt-instance startup "
                f"{name}” starts it."
            )
        case InstanceStatus.ADMIN_OFFLINE:
            yield (
                f"Instance {name} is marked offline; “gnt-instance modify --online {name}” and "
                f"then “gnt-instance startup {name}” have it run."
            )
        case InstanceStatus.ERROR_DOWN:
            yield f"Instance {name} should run on {node}, and does not."
        case InstanceStatus.ERROR_UP:
            yield (
                f"Instance {name} runs on {node}, though it should not: “gnt-instance shutdown "
                f"{name}” stops it, “gnt-instance startup {name}” lets it be."
            )
        case InstanceStatus.ERROR_WRONGNODE:
            yield (
                f"Instance {name} does not run on {node}, where it belongs, but on another node: "
                f"“gnt-instance migrate --cleanup {name}” finds out and records it."
            )
        case InstanceStatus.ERROR_NODEDOWN:
            yield (
                f"Whether instance {name} runs is not known: {node} does not answer, or not for "
                f"its guest. If that node is dead, “gnt-node modify --offline=yes {node}” says so, "
                f"and then {_elsewhere(row)}."
            )
        case InstanceStatus.ERROR_NODEOFFLINE:
            yield f"The node of instance {name}, {node}, is marked offline: {_elsewhere(row)}."
    if row["maybe_on"]:
        yield (
            f"A migration has left open whether it is on {' or '.join(row['maybe_on'])}; unless a "
            f"job moves it just now, “gnt-instance migrate --cleanup {name}” settles it."
        )
    yield from _ailing(row)


def _ailing(row: Row) -> Iterator[str]:
    """Say which disks are not well; of the others nothing is found."""
    for number, finding in enumerate(row["disk.findings"] or ()):
        if finding:
            yield f"Its disk {number} {plain(finding)}."


def _elsewhere(row: Row) -> str:
    """Say how it can run without its node."""
    name, others = row["name"], row["snodes"] or ()
    if others:
        return f"“gnt-instance failover {name}” starts it on {others[0]}"
    if DiskTemplate(row["disk_template"]).traits.holders == 1:
        return (
            "its disks are on that node alone, so it is back when the node is; “gnt-backup import” "
            f"makes {name} anew where there is an export"
        )
    return f"“gnt-instance failover {name}” starts it on another node"


def _jobs(mine: Sequence[Row], row: Row, now: float) -> Iterator[str]:
    """Say what jobs do to it, what they wait for, and which failed if it is not as it should be."""
    for job in mine:
        if job["status"] not in _ENDED:
            waits = f"; it waits for {plain(job['waits'])}" if job["waits"] else ""
            yield f"Job {job['id']} ({_called(job)}) is {job['status']}{waits}."
    failed = [job for job in mine if job["status"] == "error"]
    if failed and row["status"].startswith("ERROR"):
        last = max(failed, key=lambda job: job["end_ts"])
        message = next(failure["message"] for failure in last["opfailure"] if failure)
        ago_s = now - last["end_ts"][0]
        yield f"Job {last['id']} ({_called(last)}) failed {spoken(ago_s)} ago: {plain(message)}"


def _called(job: Row) -> str:
    return ", ".join(job["summary"])


def _waits_for_watcher(
    row: Row, mine: Sequence[Row], settings: Sequence[Any], now: float
) -> Iterator[str]:
    """Say who starts it if it should run and does not."""
    pause, drained = settings
    is_busy = any(job["status"] not in _ENDED for job in mine)
    if is_busy or row["status"] != InstanceStatus.ERROR_DOWN:
        return
    by_hand = f"“gnt-instance startup {row['name']}” starts it now"
    if pause is not None and pause > now:
        left = spoken(pause - now)
        yield f"The watcher pauses for another {left}, so nobody starts it; {by_hand}."
    elif drained:
        yield (
            "The job queue is drained, so nobody starts it: “gnt-cluster queue undrain”, and the "
            "watcher does."
        )
    else:
        yield f"The watcher starts it at one of its next rounds; {by_hand}."
