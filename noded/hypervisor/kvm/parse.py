"""What QEMU says: text and QMP answers in, values out.

Source: docs/interop/qemu-qmp-ref of QEMU 7.2; error texts recorded from Debian's 7.2.22.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import NodeFailure
from common.names import MiB
from common.noderpc.instances import GuestState

_VERSION = re.compile(r"version (\d+(?:\.\d+)+)")
_PREFIX = re.compile(r"^(\S+Z )?\S*qemu-system-\w+: ", re.MULTILINE)
_FDSET = re.compile(r"/dev/fdset/(\d+)")
_SHUTDOWN = re.compile(r"\bqemu_system_shutdown_request reason=(\d+)\b")
_GUEST_SHUTDOWN = "6"
_TOLD_LIMIT = 800  # characters of the words of each that go into an error

# What QEMU says when it cannot start, and what an operator makes of it.
_REASONS = (
    (
        re.compile(r'Failed to get (?:shared )?"\w+" lock'),
        "one of its disks is in use by another process; look for the guest on other nodes",
    ),
    (
        re.compile(r"cannot set up guest memory|Cannot allocate memory"),
        "this node has not enough memory for it",
    ),
    (
        re.compile(r"unsupported machine type|unable to find CPU model"),
        "this node's QEMU does not know its machine_version or cpu_type",
    ),
    (
        re.compile(r"could not configure /dev/net/tun"),
        "its network device is in use",
    ),
    (
        re.compile(r"Could not open '.*': (?:No such file|Permission denied)"),
        "one of its disks is not there or cannot be opened",
    ),
)


class UnexpectedOutput(NodeFailure):
    """QEMU said something we cannot read; carries its first 200 characters."""

    code = "node-failure.unexpected-output"


def parse_version(text: str) -> str:
    """Read the output of ``qemu-system-x86_64 --version``: "7.2.22".

    Raises:
        UnexpectedOutput: there is no version in it.
    """
    match = _VERSION.search(text)
    if match is None:
        raise UnexpectedOutput(f"Cannot read the version of QEMU from “{text[:200]}”.")
    return match[1]


def parse_state(status: Mapping[str, Any]) -> GuestState:
    """Read the answer of ``query-status``.

    "postmigrate" is told of a guest that has left, but also of one that stood still when its
    transfer failed; ``query-migrate`` tells the two apart. Source: QEMU 7.2,
    migration/migration.c, migration_iteration_finish.

    Raises:
        UnexpectedOutput: it has no status.
    """
    match status.get("status"):
        case "running" | "finish-migrate":  # the latter for the blink before it has moved
            return GuestState.RUNNING
        case "inmigrate":
            return GuestState.INCOMING
        case "postmigrate":
            return GuestState.MIGRATED
        case "shutdown":
            return GuestState.STOPPED
        case str():  # paused by someone, by an I/O error, by a panic, …
            return GuestState.PAUSED
        case _:
            raise UnexpectedOutput(f"QEMU's status is “{str(status)[:200]}”.")


def may_have_left(status: Mapping[str, Any]) -> bool:
    """Tell from the answer of ``query-status`` whether a guest stands still for its move.

    By post-copy it is "finish-migrate" until the rest of its memory has left, too.
    """
    return status.get("status") in ("finish-migrate", "postmigrate")


def was_turned_off(log: str) -> bool:
    """Tell from the end of QEMU's log whether a guest has turned itself off.

    The reason is a number of ``ShutdownCause``: also ended are guests by signals, by orders, and by
    panics. Source: qapi/run-state.json of QEMU 7.2.
    """
    reasons = _SHUTDOWN.findall(log)
    return bool(reasons) and reasons[-1] == _GUEST_SHUTDOWN


def lacks_space(status: Mapping[str, Any]) -> bool:
    """Tell from the answer of ``query-status`` whether a write found no room.

    That is what QEMU stops a guest for; other errors it passes on. Source: qemu-system-x86_64(1),
    “werror”, whose default is “enospc”.
    """
    return status.get("status") == "io-error"


def parse_display(answer: Mapping[str, Any]) -> str:
    """Read the answer of ``query-vnc``: "127.0.0.1:5900", "[::1]:5901", or "" without one."""
    if not answer.get("enabled"):
        return ""
    return _address(answer.get("host", ""), answer.get("service", ""))


@dataclass(frozen=True, slots=True)
class BlockNode:
    """What QEMU has open; ``fdset`` is where the descriptor is, ``size`` in bytes."""

    fdset: int | None
    size: int


def parse_spice(answer: Mapping[str, Any]) -> str:
    """Read the answer of ``query-spice``: the address and port of the display."""
    if not answer.get("enabled"):
        return ""
    port = answer.get("port") or answer.get("tls-port", "")
    return _address(answer.get("host", ""), str(port))


def _address(host: str, port: str) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_threads(answer: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Read the answer of ``query-cpus-fast``: the threads of processors, by their numbers.

    Raises:
        UnexpectedOutput: one has no thread.
    """
    try:
        found = {int(each["cpu-index"]): int(each["thread-id"]) for each in answer}
    except (KeyError, TypeError, ValueError) as error:
        raise UnexpectedOutput(f"QEMU's processors are “{str(answer)[:200]}”.") from error
    return tuple(found[number] for number in sorted(found))


def parse_block_nodes(answer: Sequence[Mapping[str, Any]]) -> dict[str, BlockNode]:
    """Read the answer of ``query-named-block-nodes``, by name.

    Raises:
        UnexpectedOutput: a node has no name or size.
    """
    try:
        return {
            node["node-name"]: BlockNode(
                fdset=int(match[1]) if (match := _FDSET.fullmatch(node["file"])) else None,
                size=int(node["image"]["virtual-size"]),
            )
            for node in answer
        }
    except (KeyError, TypeError) as error:
        raise UnexpectedOutput(f"QEMU's block nodes are “{str(answer)[:200]}”.") from error


def parse_devices(answer: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    """Read the answer of ``qom-list`` of ``/machine/peripheral``: the names of devices."""
    return frozenset(str(each.get("name")) for each in answer)


def parse_balloon(answer: Mapping[str, Any]) -> MiB:
    """Read the answer of ``query-balloon``: how much memory a guest uses, rounded up.

    Raises:
        UnexpectedOutput: it is something else.
    """
    try:
        return MiB(-(-int(answer["actual"]) >> 20))
    except (KeyError, TypeError, ValueError) as error:
        raise UnexpectedOutput(f"QEMU's balloon is “{str(answer)[:200]}”.") from error


def parse_cpu_ticks(stat: str) -> int:
    """Read ``/proc/PID/stat``: clock ticks spent in user and kernel mode. Source: proc(5).

    The empty text of a process that has just ended counts as none.
    """
    fields = stat.rpartition(")")[2].split()  # the name before may hold anything
    return sum(map(int, fields[11:13]))


def explain(log: str, tpm_log: str = "") -> str:
    """Turn what QEMU said when it died into words for the middle of a sentence.

    Args:
        log: what QEMU said.
        tpm_log: what its TPM said, if it has one: QEMU does not know why that is not there.
    """
    words = _last_words(_PREFIX.sub("", log))
    said = f"QEMU said: {words}" if words else "QEMU said nothing"
    if tpm_words := _last_words(tpm_log):
        said = f"{said}; its TPM said: {tpm_words}"
    for pattern, reason in _REASONS:
        if pattern.search(words):
            return f"{reason}. {said}"
    return said


def _last_words(log: str) -> str:
    return " ".join(log.split())[-_TOLD_LIMIT:]
