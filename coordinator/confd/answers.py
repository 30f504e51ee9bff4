"""What each kind of question is answered, by number and form as Ganeti 3.0 has them."""

from collections.abc import Callable
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from common.messages import Report
from coordinator.confd.directory import Directory
from coordinator.confd.envelope import PROTOCOL, Answer, Query
from coordinator.confd.shortening import page

OK, ERROR, NOT_IMPLEMENTED = range(3)


class Trouble(IntEnum):
    """The answer where the status is ERROR."""

    UNKNOWN_ENTRY = 0
    INTERNAL = 1
    ARGUMENT = 2


class Wanted(IntEnum):
    """Of a cluster's master."""

    NAME = 0
    IP = 1
    PRIMARY_IP = 2


class ByAddress(Report, rename={"link": "0", "ip": "1", "ips": "2"}):
    """Asks for nodes of instances that have addresses: one, or several."""

    link: str | None = None
    ip: str | None = None
    ips: tuple[str, ...] | None = None


class OfMaster(Report, rename={"fields": "3"}):
    fields: tuple[Wanted, ...] = ()


class OfMany(Report):
    """Asks for so many members of a part of the configuration as fit, after one of them."""

    path: str
    after: str = ""


class _Found(NamedTuple):
    status: int
    answer: Any


UNKNOWN = _Found(ERROR, Trouble.UNKNOWN_ENTRY)
BAD_ARGUMENT = _Found(ERROR, Trouble.ARGUMENT)


def answer(query: Query, directory: Directory) -> Answer:
    """Answer a question; whatever is asked."""
    if query.protocol != PROTOCOL:
        return Answer(status=ERROR, answer=Trouble.ARGUMENT, serial=0)
    ask = _QUESTIONS.get(query.type)
    if ask is None:
        return Answer(status=NOT_IMPLEMENTED, answer=None, serial=0)
    try:
        found = ask(query.query, directory)
    except (msgspec.ValidationError, RecursionError):
        found = BAD_ARGUMENT
    serial = directory.snapshot.serial_no
    if found.status != OK or query.type == PING:
        serial = 0  # as Ganeti has it
    return Answer(status=found.status, answer=found.answer, serial=serial)


def _ping(_: Any, directory: Directory) -> _Found:
    return _Found(OK, directory.snapshot.version)


def _role(query: Any, directory: Directory) -> _Found:
    node = directory.find_node(_name(query))
    return UNKNOWN if node is None else _Found(OK, directory.role_of(node))


def _node_by_address(query: Any, directory: Directory) -> _Found:
    asked = msgspec.convert(query, ByAddress)
    link = directory.default_link if asked.link is None else asked.link
    if asked.ip is not None:
        return _host(link, asked.ip, directory)
    serial = directory.snapshot.serial_no
    found = (_host(link, ip, directory) for ip in asked.ips or ())
    return _Found(OK, [(*each, serial if each.status == OK else 0) for each in found])


def _host(link: str, ip: str, directory: Directory) -> _Found:
    node = directory.find_host(link, ip)
    return UNKNOWN if node is None else _Found(OK, node.primary_ip)


def _master(query: Any, directory: Directory) -> _Found:
    master = directory.master
    if query is None or query == "":
        return _Found(OK, master.name)
    told = {
        Wanted.NAME: master.name,
        Wanted.IP: directory.snapshot.cluster.master_ip or master.primary_ip,
        Wanted.PRIMARY_IP: master.primary_ip,
    }
    return _Found(OK, [told[field] for field in msgspec.convert(query, OfMaster).fields])


def _node_ips(_: Any, directory: Directory) -> _Found:
    return _Found(OK, [node.primary_ip for node in directory.nodes()])


def _candidate_ips(_: Any, directory: Directory) -> _Found:
    return _Found(OK, [node.primary_ip for node in directory.nodes() if node.master_candidate])


def _instance_ips(query: Any, directory: Directory) -> _Found:
    return _Found(OK, directory.ips(_name(query) if query else directory.default_link))


def _mirrors(query: Any, directory: Directory) -> _Found:
    node = directory.find_node(_name(query))
    return UNKNOWN if node is None else _Found(OK, directory.mirrors(node))


def _node_instances(query: Any, directory: Directory) -> _Found:
    node = directory.find_node(_name(query))
    return UNKNOWN if node is None else _Found(OK, directory.instances_of(node))


def _disks(query: Any, directory: Directory) -> _Found:
    instance = directory.find_instance(_name(query))
    return UNKNOWN if instance is None else _Found(OK, instance.disks)


def _configuration(query: Any, directory: Directory) -> _Found:
    is_paged = isinstance(query, dict)
    asked = msgspec.convert(query, OfMany) if is_paged else OfMany(path=_name(query))
    try:
        part = directory.at(asked.path)
    except LookupError:
        return BAD_ARGUMENT
    if not is_paged:
        return _Found(OK, part)
    return _Found(OK, page(part, asked.after)) if isinstance(part, dict) else BAD_ARGUMENT


def _collectors(_: Any, __: Directory) -> _Found:
    # Which are active is said on each node, by the options of its monitoring agent.
    return _Found(OK, {})


def _name(query: Any) -> str:
    return msgspec.convert(query, str)


PING = 0
_QUESTIONS: dict[int, Callable[[Any, Directory], _Found]] = {
    PING: _ping,
    1: _role,
    2: _node_by_address,
    3: _master,
    4: _node_ips,
    5: _candidate_ips,
    6: _instance_ips,
    7: _mirrors,
    8: _node_instances,
    9: _disks,
    10: _configuration,
    11: _collectors,
}
