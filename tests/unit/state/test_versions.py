"""Rows that versions share: each keeps what it does not know, and refuses what it would misread."""

import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import to_json
from common.model.entity import Entity
from common.model.instance import Instance
from common.model.job import Job
from common.model.stamp import Stamp
from common.model.stored import Part, Stored
from common.noderpc.replica import Row
from coordinator.state.kinds import KINDS, Kind
from coordinator.state.rows import Put, from_row, settle, to_row
from coordinator.state.state import state_of
from tests.golden.states import versions, written_states
from tests.support.candidates import instance, job, stored_rows
from tests.support.kinds import knowing
from tests.support.replicas import row

ROWS = {
    f"{row.kind} {row.id}, version {version}": row
    for version in versions()
    for state in written_states(version, "cluster.json")
    for row in state.rows
}


BY_NAME = (
    "diskparams",
    "hvparams",
    "default_iallocators",
)  # have no fields, but entries, all of one type


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all JSON objects within a value that have fields, itself first."""
    if isinstance(value, dict):
        yield value
        for name, each in value.items():
            if name != "backing":  # what nodes are told is read strictly
                named = name in BY_NAME and isinstance(each, dict)
                yield from _objects(list(each.values()) if named else each)
    elif isinstance(value, list):
        for each in value:
            yield from _objects(each)


def _with_field(body: bytes, index: int) -> Any:
    """Return a row's values with a field that nobody knows in one of its objects."""
    value = msgspec.json.decode(body)
    list(_objects(value))[index]["colour"] = {"is": ["red", 1.5, None]}
    return value


def _row(kind: str, value: dict[str, Any]) -> Row:
    return row((kind, value.get("uuid") or str(value["id"])), to_json(value))


def _values(item: Stored) -> dict[str, Any]:
    value: dict[str, Any] = msgspec.json.decode(to_row(item).body)
    return value


@pytest.mark.parametrize("which", ROWS)
def test_a_field_that_is_not_known_is_kept_wherever_it_is(which: str) -> None:
    known = ROWS[which]
    for index in range(len(list(_objects(msgspec.json.decode(known.body))))):
        value = _with_field(known.body, index)
        item = from_row(replace(known, body=msgspec.Raw(to_json(value))))
        kept = _values(item)
        assert {name: kept[name] for name in value} == value  # others are newer than the row


@pytest.mark.parametrize("which", ROWS)
def test_what_is_in_memory_is_what_a_successor_loads(which: str) -> None:
    known = ROWS[which]
    for index in range(len(list(_objects(msgspec.json.decode(known.body))))):
        body = msgspec.Raw(to_json(_with_field(known.body, index)))
        update, change = settle(Put(from_row(replace(known, body=body))))
        assert update.item == from_row(Row(kind=change.kind, id=change.id, body=change.body))
        assert settle(update) == (update, change)


def test_what_nodes_are_told_is_no_place_for_what_is_not_known() -> None:
    (known, *_) = (row for row in ROWS.values() if row.kind == "disk")
    value = msgspec.json.decode(known.body)
    value["backing"]["colour"] = "red"
    with pytest.raises(InvalidRequest, match=f"row disk {known.id} cannot be read: .*`colour`"):
        from_row(replace(known, body=msgspec.Raw(to_json(value))))


def _structs(hint: Any) -> Iterator[type[msgspec.Struct]]:
    """Yield all classes of which a value of a type may have instances in it."""
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        yield hint
        for name, each in typing.get_type_hints(hint).items():
            if name not in ("schema", "backing"):  # what nodes are told is read strictly
                yield from _structs(each)
    for each in typing.get_args(hint):
        yield from _structs(each)


@pytest.mark.parametrize("kind", KINDS.by_name.values(), ids=lambda kind: kind.name)
def test_whatever_is_in_a_row_can_keep_what_is_not_known(kind: Kind[Any, Any]) -> None:
    cannot = {each for each in _structs(kind.type) if not issubclass(each, Part)}
    assert not cannot, "they are not derived from Part"


def test_a_change_leaves_alone_what_is_not_known() -> None:
    value = _values(instance("web1", "alpha")) | {"colour": "red"}
    item = from_row(_row("instance", value))
    assert isinstance(item, Instance)
    assert _values(replace(item, os="debian")) == value | {"os": "debian"}


def test_what_a_job_says_is_its_own() -> None:
    """A value that looks like fields that are kept is no such thing."""
    odd = job(7, {"?": {"a": 1}, "list": [{"?": {}}]})
    update, change = settle(Put(odd))
    assert update.item == odd
    assert msgspec.json.decode(change.body)["ops"][0]["result"] == odd.ops[0].result
    both = _values(odd) | {"colour": "red"}
    item = from_row(_row("job", both))
    assert isinstance(item, Job)
    assert item.ops[0].result == odd.ops[0].result
    assert _values(item) == both


class Disc(Entity, kw_only=True):
    """Of version 3: its ``size`` was called ``mib``, and was text before."""

    size: int


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    return {("size" if name == "mib" else name): value for name, value in values.items()}


def _counted(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"size": int(values["size"])}


THIRD = Kind[str, Disc]("disc", Disc, upgrades=(_renamed, _counted), since=2)
_BASE: dict[str, Any] = {
    "uuid": "d", "ctime": 0.0, "mtime": 0.0, "serial_no": 1, "tags": [], "colour": "red",
}  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [
        {"mib": "64"},
        {"size": "64", "schema": [2, 1]},
        {"size": 64, "schema": [3, 2]},
    ],
)
def test_an_older_row_is_made_new_when_it_is_read(written: dict[str, Any]) -> None:
    with knowing(THIRD):
        item = from_row(_row("disc", _BASE | written))
        assert isinstance(item, Disc)
        assert item.size == 64
        assert _values(item) == _BASE | {"size": 64, "schema": [3, 2]}
        update, change = settle(Put(item))
        assert update.item == item == from_row(row(("disc", "d"), bytes(change.body)))


def test_what_is_made_anew_tells_its_version() -> None:
    with knowing(THIRD):
        update, change = settle(Put(Disc(uuid="d", size=64)))
        assert msgspec.json.decode(change.body)["schema"] == [3, 2]
        assert update.item == from_row(row(("disc", "d"), bytes(change.body)))


@pytest.mark.parametrize(("version", "since"), [(4, 2), (4, 3), (9, 0)])
def test_a_newer_row_is_carried_along_where_it_says_so(version: int, since: int) -> None:
    value = _BASE | {"size": 64, "schema": [version, since]}
    with knowing(THIRD):
        item = from_row(_row("disc", value))
        assert isinstance(item, Disc)
        assert _values(replace(item, size=32)) == value | {"size": 32}


@pytest.mark.parametrize(("version", "since"), [(4, 2), (9, 0)])
def test_a_newer_row_keeps_its_version_though_all_of_its_fields_are_known(
    version: int, since: int
) -> None:
    plain = {name: value for name, value in _BASE.items() if name != "colour"}
    value = plain | {"size": 64, "schema": [version, since]}
    with knowing(THIRD):
        item = from_row(_row("disc", value))
        assert isinstance(item, Disc)
        assert _values(replace(item, size=32)) == value | {"size": 32}


def test_a_newer_row_is_refused_by_name_where_it_would_be_misread() -> None:
    with (
        knowing(THIRD),
        pytest.raises(InvalidRequest, match=r"row disc d is of version 5, .* knows 3"),
    ):
        from_row(_row("disc", _BASE | {"size": 64, "schema": [5, 4]}))


@pytest.mark.parametrize("written", [{}, {"mib": "many"}, {"mib": {}}])
def test_an_older_row_that_cannot_be_made_new_is_named(written: dict[str, Any]) -> None:
    with knowing(THIRD), pytest.raises(InvalidRequest, match=r"row disc d is damaged: .*version 1"):
        from_row(_row("disc", _BASE | written))


@pytest.mark.parametrize("schema", [{}, {"schema": [3, 1]}])
def test_a_row_of_an_unknown_kind_is_refused_by_name(schema: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match=r"unknown kind “disc” \(d\)"):
        from_row(_row("disc", _BASE | schema))


def test_a_row_of_an_unknown_kind_is_carried_along_where_it_says_so() -> None:
    body = b'{"uuid":"d",  "schema":[1,0],"size":1e2}'  # to the letter
    rows = [row(("disc", "d"), body), to_row(job(1))]
    state = state_of(map(from_row, rows), Stamp())
    later = state.apply([Put(job(2)), Put(instance("web1", "alpha"))])
    assert stored_rows(later)["disc", "d"] == body
    assert len(list(later.items())) == 4


@pytest.mark.parametrize("schema", ["3", [0, 0], [1, -1], [2], {"version": 2}, [1, 1, 1]])
def test_a_version_that_is_none_is_refused(schema: Any) -> None:
    for kind in ("disc", "nic"):
        with pytest.raises(InvalidRequest, match=r"cannot be read|unknown kind"):
            from_row(_row(kind, _BASE | {"schema": schema}))
