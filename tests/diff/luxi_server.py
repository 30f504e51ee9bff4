"""A LUXI socket that answers with a given cluster, for programs of both kinds to ask."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordinator.allocator.snapshot import NOWHERE, Instance, Node, Snapshot
from tests.unit.allocator.hail import wire_policy

_END = b"\3"
_NORMAL, _OFFLINE, _UNKNOWN = 0, 4, 1  # status of a field
_LIVE = frozenset({"mtotal", "mnode", "mfree", "dtotal", "dfree", "ctotal", "cnos", "spfree"})
_DISKS = frozenset({"dtotal", "dfree", "spfree"})


@dataclass(frozen=True)
class Answering:
    """What the socket says of the cluster.

    Attributes:
        hypervisor: the first of those enabled, so that of all nodes.
        has_disks: whether nodes report disk space; none do where all files are shared.
        submitted: jobs, in sets, as they came; all succeed at once.
    """

    cluster: Snapshot
    hypervisor: str = "xen-pvm"
    has_disks: bool = True
    submitted: list[list[list[dict[str, Any]]]] = field(default_factory=list)

    def answer(self, method: str, args: list[Any]) -> Any:
        if method == "SubmitManyJobs":
            self.submitted.append(args[0])
            return [[True, 100 * len(self.submitted) + at] for at in range(len(args[0]))]
        if method == "QueryJobs":
            jobs, fields = args
            known = {"status": "success", "opstatus": ["success"], "opresult": [None]}
            return [[{"id": job, **known}[name] for name in fields] for job in jobs]
        if method == "QueryClusterInfo":
            return self._info()
        what, fields, _ = args
        rows = {"group": self._groups, "node": self._nodes, "instance": self._instances}[what]()
        return {
            "fields": [],
            "data": [[row.get(field, [_UNKNOWN, None]) for field in fields] for row in rows],
        }

    def save_as_rapi(self, folder: Path) -> None:
        """Write what the remote API says into files, as ``file://`` reads them."""
        bulk = {
            "info": self._info(),
            "groups": [_values(row) for row in self._groups()],
            "nodes": [_nested(row, "ndp/", "ndparams") for row in self._nodes()],
            "instances": [_nested(row, "be/", "beparams") for row in self._instances()],
        }
        for name, told in bulk.items():
            (folder / f"{name}.json").write_text(json.dumps(told), encoding="utf-8")

    def _info(self) -> dict[str, Any]:
        return {
            "tags": list(self.cluster.tags),
            "ipolicy": wire_policy(self.cluster.policy),
            "master": next((node.name for node in self.cluster.nodes if node.is_master), ""),
            "default_hypervisor": self.hypervisor,
            "enabled_hypervisors": [self.hypervisor],
        }

    def _groups(self) -> list[dict[str, list[Any]]]:
        return [
            _row(uuid=group.uuid, name=group.name, alloc_policy=str(group.alloc_policy),
                 ipolicy=wire_policy(group.policy), tags=list(group.tags))
            for group in self.cluster.groups
        ]  # fmt: skip

    def _nodes(self) -> list[dict[str, list[Any]]]:
        return [self._node(node) for node in self.cluster.nodes]

    def _node(self, node: Node) -> dict[str, list[Any]]:
        values = {
            "name": node.name, "offline": node.offline, "drained": False, "vm_capable": True,
            "group.uuid": self.cluster.groups[node.group].uuid, "tags": list(node.tags),
            "ndp/spindle_count": node.spindles, "ndp/exclusive_storage": node.exclusive,
            "ndp/cpu_speed": node.speed, "sptotal": node.spindles,
            "role": "M" if node.is_master else "O" if node.offline else "R",
            "mtotal": int(node.total_memory), "mnode": node.own_memory, "mfree": node.free_memory,
            "dtotal": int(node.total_disk), "dfree": node.free_disk,
            "ctotal": int(node.total_cpus), "cnos": node.own_cpus, "spfree": node.free_spindles,
        }  # fmt: skip
        silent = _LIVE if node.offline else frozenset() if self.has_disks else _DISKS
        return {
            key: [_OFFLINE, None] if key in silent else [_NORMAL, value]
            for key, value in values.items()
        }

    def _instances(self) -> list[dict[str, list[Any]]]:
        return [self._instance(one) for one in self.cluster.instances]

    def _instance(self, one: Instance) -> dict[str, list[Any]]:
        names = [node.name for node in self.cluster.nodes]
        values = {
            "name": one.name, "disk_usage": one.disk, "be/memory": one.memory,
            "be/vcpus": one.vcpus, "status": one.status, "pnode": names[one.primary],
            "snodes": [] if one.secondary == NOWHERE else [names[one.secondary]],
            "tags": list(one.tags), "oper_ram": one.memory + 64,
            "be/auto_balance": one.auto_balance,
            "disk_template": one.template, "be/spindle_use": one.spindle_use,
            "disk.sizes": [one.disk], "disk.spindles": [one.disk_spindles],
            "forthcoming": one.forthcoming,
        }  # fmt: skip
        return {key: [_NORMAL, value] for key, value in values.items()}


def _row(**values: Any) -> dict[str, list[Any]]:
    return {key: [_NORMAL, value] for key, value in values.items()}


def _values(row: dict[str, list[Any]]) -> dict[str, Any]:
    return {key: value for key, (_, value) in row.items()}


def _nested(row: dict[str, list[Any]], prefix: str, name: str) -> dict[str, Any]:
    """Values, those whose name begins with ``prefix`` in an object of their own."""
    values = _values(row)
    inner = {key.removeprefix(prefix): values.pop(key) for key in row if key.startswith(prefix)}
    return {**values, name: inner}


@contextmanager
def serving(answering: Answering, path: Path) -> Iterator[str]:
    """Answer on a socket at ``path``, one connection after the other; yields the path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        thread = threading.Thread(target=_accept, args=(listener, answering), daemon=True)
        thread.start()
        try:
            yield str(path)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
    path.unlink()


def _accept(listener: socket.socket, answering: Answering) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            _talk(connection, answering)


def _talk(connection: socket.socket, answering: Answering) -> None:
    buffer = b""
    while chunk := connection.recv(1 << 16):
        buffer += chunk
        while _END in buffer:
            text, buffer = buffer.split(_END, 1)
            asked = json.loads(text)
            result = answering.answer(asked["method"], asked["args"])
            told = json.dumps({"success": True, "result": result})
            connection.sendall(told.encode() + _END)
