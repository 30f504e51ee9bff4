"""What holds for every operation."""

from types import NoneType
from typing import Any

import msgspec
import pytest

from common.errors import InvalidRequest
from common.model.disk import Disk
from common.model.instance import Instance
from common.model.nic import Nic
from common.model.node import Node, NodeRef
from common.names import InstanceName
from coordinator.locks.names import BGL, Level, LockName, Mode
from coordinator.operations.base import REGISTRY, Operation, read_operation
from coordinator.operations.catalogue import CATALOGUE
from coordinator.operations.follow_up import FollowUp
from coordinator.operations.ganeti.opcodes import opcodes
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.migrate import MigrateInstance
from coordinator.operations.locking import from_rows, to_rows, wanted
from coordinator.operations.node.add import AddNode
from coordinator.operations.placement.promises import Promise
from coordinator.operations.registry import find_operation, load_all
from coordinator.operations.specs import read_backend

load_all()
EVERY = sorted(CATALOGUE)
OURS = {kind.__name__ for kind in (Disk, Instance, Nic, Node, NodeRef, FollowUp, Promise)}
OURS |= {kind.plan_type.__name__ for kind in REGISTRY.values()}
for _kind in REGISTRY.values():
    _parts = msgspec.json.schema_components([_kind.choice_type])[1]
    OURS |= {name for name, schema in _parts.items() if "enum" not in schema}


@pytest.mark.parametrize("opcode", EVERY)
def test_it_says_what_it_is_for(opcode: str) -> None:
    kind = find_operation(opcode)
    assert kind.opcode == opcode
    assert (kind.__doc__ or "").strip().partition("\n")[0].endswith(".")


@pytest.mark.parametrize("opcode", EVERY)
def test_every_parameter_is_explained(opcode: str) -> None:
    kind = find_operation(opcode)
    assert set(kind.parameters()) == set(kind.__struct_encode_fields__)
    assert all(parameter.help for parameter in kind.parameters().values())


@pytest.mark.parametrize("opcode", EVERY)
def test_flags_are_given_once(opcode: str) -> None:
    flags = [f for p in find_operation(opcode).parameters().values() for f in p.flags]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize("opcode", EVERY)
def test_it_reads_what_it_writes(opcode: str) -> None:
    order = _sample(find_operation(opcode))
    wire = order.to_input()
    assert wire["OP_ID"] == opcode
    again = read_operation(msgspec.json.decode(msgspec.json.encode(wire)))
    assert again == order


@pytest.mark.parametrize("opcode", EVERY)
def test_an_unknown_parameter_is_refused(opcode: str) -> None:
    wire = _sample(find_operation(opcode)).to_input()
    with pytest.raises(InvalidRequest, match="colour"):
        read_operation(wire | {"colour": "red"})


@pytest.mark.parametrize("opcode", EVERY)
def test_null_stands_for_what_is_left_out(opcode: str) -> None:
    kind = find_operation(opcode)
    wire = _sample(kind).to_input()
    for field in msgspec.structs.fields(kind):
        if not field.required and field.name not in getattr(kind, "needs", ()):
            assert read_operation(wire | {field.name: None}) == _sample(kind), field.name


@pytest.mark.parametrize("opcode", EVERY)
def test_plans_can_be_read_from_the_journal(opcode: str) -> None:
    kind = find_operation(opcode)
    msgspec.json.schema(kind.plan_type)


@pytest.mark.parametrize("opcode", EVERY)
def test_choices_can_be_read_from_the_job(opcode: str) -> None:
    kind = find_operation(opcode)
    assert (kind.choice_type is NoneType) == (kind.choose is Operation.choose)
    msgspec.json.schema(kind.choice_type)


@pytest.mark.parametrize("opcode", EVERY)
def test_no_parameter_is_of_a_type_that_only_the_coordinator_makes(opcode: str) -> None:
    _, used = msgspec.json.schema_components([find_operation(opcode)])
    assert not used.keys() & OURS


def test_attributes_that_all_have_are_left_to_the_queue() -> None:
    wire = {
        "OP_ID": "OP_TEST_DELAY",
        "duration": 1,
        "priority": 10,
        "depends": None,
        "comment": "x",
    }
    assert read_operation(wire).summary() == "TEST_DELAY(1.0)"


def test_the_summary_names_the_object() -> None:
    assert MigrateInstance(instance_name=InstanceName("web1")).summary() == (
        "INSTANCE_MIGRATE(web1)"
    )
    assert REGISTRY["OP_CLUSTER_DESTROY"]().summary() == "CLUSTER_DESTROY"


def test_a_token_is_secret() -> None:
    secrets = [name for name, parameter in AddNode.parameters().items() if parameter.secret]
    assert secrets == ["token"]


def test_locks_survive_the_journal() -> None:
    locks = wanted(instance="web1", nodes=["a"], nodes_exclusive=["b"], room=["a"])
    assert from_rows(to_rows(locks)) == locks
    assert dict(locks.locks) == {
        BGL: Mode.SHARED,
        LockName(Level.INSTANCE, "web1"): Mode.EXCLUSIVE,
        LockName(Level.NODE, "a"): Mode.SHARED,
        LockName(Level.NODE, "b"): Mode.EXCLUSIVE,
        LockName(Level.NODE_RES, "a"): Mode.SHARED,
    }


def test_a_node_that_is_changed_is_locked_exclusively_even_if_it_is_also_shared() -> None:
    locks = wanted(nodes=["a"], nodes_exclusive=["a"])
    assert locks.locks[LockName(Level.NODE, "a")] is Mode.EXCLUSIVE


def test_memory_stands_for_both_its_bounds() -> None:
    assert read_backend({"memory": "1G", "vcpus": "2"}) == {
        "maxmem": 1024, "minmem": 1024, "vcpus": 2,
    }  # fmt: skip
    assert read_backend({"maxmem": 512}) == {"maxmem": 512}
    with pytest.raises(InvalidRequest, match=r"^memory: “lots” is no size"):
        read_backend({"memory": "lots"})


def _sample(kind: type[Operation[Any, Any]]) -> Operation[Any, Any]:
    """Return an order that has only what it needs."""
    values: dict[str, Any] = {
        "duration": 1.0, "output_fields": ("name",), "storage_type": "lvm-vg",
        "changes": {"allocatable": True}, "disk_template": "sharedfile",
        "primary_ip": "192.0.2.7", "nodes": ["beta"], "kind": "node", "network": "192.0.2.0/24",
        "tags": ["blue"], "disk": 0, "amount": 1024, "mode": "remote", "command": "health",
    }  # fmt: skip
    needed = [field.name for field in msgspec.structs.fields(kind) if field.required]
    needed += getattr(kind, "needs", ())
    given = {name: values.get(name, "web1") for name in needed}
    order: Operation[Any, Any] = msgspec.convert(given, kind)
    return order


def test_an_instance_on_the_command_line_needs_a_name_and_a_template_only() -> None:
    assert not any(field.required for field in msgspec.structs.fields(CreateInstance))
    assert list(CreateInstance.needs) == ["instance_name", "disk_template"]


def test_migration_as_ganetis_programs_ask_for_it_is_understood() -> None:
    load_all()
    asked = read_operation(
        {
            "OP_ID": "OP_INSTANCE_MIGRATE", "instance_name": "web1", "instance_uuid": None,
            "target_node": "beta", "target_node_uuid": None, "mode": None, "live": None,
            "allow_runtime_changes": False, "ignore_ipolicy": False, "cleanup": False,
            "iallocator": None, "allow_failover": True, "ignore_hvversions": True,
        }
    )  # fmt: skip
    assert asked.summary() == "INSTANCE_MIGRATE(web1)"


@pytest.mark.parametrize("opcode", sorted(CATALOGUE.keys() & opcodes().keys()))
def test_what_is_ganetis_alone_is_taken_where_it_asks_for_nothing(opcode: str) -> None:
    kind = find_operation(opcode)
    wire = _sample(kind).to_input()
    for name in opcodes()[opcode].keys() - set(kind.__struct_encode_fields__):
        for value in (None, opcodes()[opcode][name].default):
            assert read_operation(wire | {name: value}) == _sample(kind)
        with pytest.raises(InvalidRequest, match=f"parameter {name} of {opcode} is Ganeti's"):
            read_operation(wire | {name: "something else"})


@pytest.mark.parametrize(
    ("opcode", "given"),
    [
        ("OP_CLUSTER_SET_PARAMS", {"enabled_data_collectors": {}}),
        ("OP_INSTANCE_MIGRATE", {"ignore_hvversions": True}),
        ("OP_INSTANCE_CREATE", {"wait_for_sync": False}),
        ("OP_INSTANCE_CREATE", {"file_driver": "loop"}),
        ("OP_INSTANCE_SET_PARAMS", {"file_driver": "loop"}),
    ],
)
def test_so_is_what_has_no_effect_here(opcode: str, given: dict[str, Any]) -> None:
    kind = find_operation(opcode)
    assert read_operation(_sample(kind).to_input() | given) == _sample(kind)


@pytest.mark.parametrize("device", ["disks", "nics"])
@pytest.mark.parametrize(
    ("older", "now"),
    [
        (["add", {"name": "x"}], ["add", -1, {"name": "x"}]),
        (["remove", {}], ["remove", -1, {}]),
        ([1, {"name": "x"}], ["modify", 1, {"name": "x"}]),
        (["add", 0, {"name": "x"}], ["add", 0, {"name": "x"}]),
    ],
)
def test_changes_of_devices_are_read_in_the_older_form_too(
    device: str, older: list[Any], now: list[Any]
) -> None:
    wire = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1"}
    assert read_operation(wire | {device: [older]}) == read_operation(wire | {device: [now]})


@pytest.mark.parametrize("action", ["attach", "detach"])
def test_a_disk_comes_and_goes_as_it_is_in_the_older_form_too(action: str) -> None:
    wire = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1"}
    older, now = ({"disks": [[action, *which, {"name": "x"}]]} for which in ((), (-1,)))
    assert read_operation(wire | older) == read_operation(wire | now)


@pytest.mark.parametrize("change", [["add"], ["swap", {}], [{}, {}], [1.5, {}], "add", [[], {}]])
def test_changes_of_devices_in_no_form_are_refused(change: Any) -> None:
    wire = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1"}
    for given in ([change], change):
        with pytest.raises(InvalidRequest, match="nics"):
            read_operation(wire | {"nics": given})


@pytest.mark.parametrize("given", [0, 1, "false", {}])
def test_a_default_of_another_type_is_none(given: Any) -> None:
    wire = {"OP_ID": "OP_INSTANCE_STARTUP", "instance_name": "web1"}
    read_operation(wire | {"startup_paused": False})
    with pytest.raises(InvalidRequest, match="startup_paused"):
        read_operation(wire | {"startup_paused": given})


@pytest.mark.parametrize("opcode", sorted(opcodes().keys() - CATALOGUE.keys()))
def test_opcodes_that_are_ganetis_alone_are_refused_by_name(opcode: str) -> None:
    for ask in (find_operation, lambda name: read_operation({"OP_ID": name})):
        with pytest.raises(InvalidRequest, match=f"{opcode} is Ganeti's; it is known, and not"):
            ask(opcode)


@pytest.mark.parametrize("wire", [{}, {"OP_ID": "OP_INSTANCE_DANCE"}, {"OP_ID": ["OP_QUERY"]}])
def test_what_nobody_knows_is_no_operation(wire: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="There is no operation"):
        read_operation(wire)


def test_a_parameter_with_a_slip_is_named_with_what_was_meant() -> None:
    with pytest.raises(InvalidRequest, match=r"“duratoin”\. Did you mean “duration”\?"):
        read_operation({"OP_ID": "OP_TEST_DELAY", "duratoin": 1})
