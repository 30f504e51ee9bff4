"""Plans and choices of other versions, and objects within them."""

from typing import Any

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.model.instance import Instance
from common.model.job import OperationRecord
from common.model.node import NodeRef
from common.names import InstanceId, JobId, NodeId, NodeName
from coordinator.jobs.foreign import read_queued
from coordinator.operations.base import REGISTRY
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.place import Place
from coordinator.operations.registry import load_all
from coordinator.state.kinds import Kind
from coordinator.state.versions import from_values, to_values
from tests.sim.settings import create
from tests.support.candidates import instance
from tests.support.kinds import knowing


class Plan(Order):
    """As plans are that create something, or change it."""

    before: tuple[Instance, ...]
    after: dict[str, Instance]


class NewerInstance(Instance, kw_only=True):
    colour: str = "none"


class NewerPlan(Order):
    before: tuple[NewerInstance, ...]
    after: dict[str, NewerInstance]


def _coloured(values: dict[str, Any]) -> dict[str, Any]:
    return values | {"colour": "grey"}


WEB1 = instance("web1", "alpha")
NEWER = Kind[InstanceId, NewerInstance](
    "instance", NewerInstance, named=True, upgrades=(_coloured,), since=1
)
STRICT = Kind[InstanceId, NewerInstance](
    "instance", NewerInstance, named=True, upgrades=(_coloured,)
)


def test_an_older_version_gives_back_what_it_does_not_know_of_a_plan() -> None:
    with knowing(NEWER):
        red = NewerInstance(**{**_fields(WEB1), "colour": "red"})
        written = to_values(NewerPlan(before=(red,), after={"web1": red}), NewerPlan)
    read = from_values(written, Plan)
    changed = replace(read, after={"web1": replace(read.after["web1"], os="debian")})
    again = to_values(changed, Plan)
    assert again["before"][0] == written["before"][0]
    assert again["after"]["web1"] == written["after"]["web1"] | {"os": "debian"}
    with knowing(NEWER):
        assert from_values(again, NewerPlan).after["web1"].colour == "red"


def test_what_is_in_an_older_plan_is_made_new() -> None:
    written = to_values(Plan(before=(WEB1,), after={}), Plan)
    with knowing(NEWER):
        (read,) = from_values(written, NewerPlan).before
        assert read.colour == "grey"


def test_a_plan_with_what_would_be_misread_is_refused() -> None:
    with knowing(STRICT):
        red = NewerInstance(**{**_fields(WEB1), "colour": "red"})
        written = to_values(NewerPlan(before=(red,), after={}), NewerPlan)
    with pytest.raises(InvalidRequest, match=f"row instance {WEB1.uuid} is of version 2"):
        from_values(written, Plan)


def _fields(item: Instance) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__struct_fields__}


def test_what_every_operation_plans_can_be_written_and_read() -> None:
    load_all()
    for operation in REGISTRY.values():
        for kind in (operation.plan_type, operation.choice_type):
            assert to_values(None, kind) is None  # or it says what is in its way


def test_a_choice_that_means_something_else_is_refused_though_it_looks_the_same() -> None:
    place = Place(node=NodeRef(uuid=NodeId("n"), name=NodeName("alpha")))
    record = OperationRecord(
        input=create("web1").to_input(), summary="", choice=to_values(place, Place)
    )
    operation, choice = read_queued(JobId(7), record, {})
    assert isinstance(operation, CreateInstance)
    assert choice == place
    newer = replace(record, version=CreateInstance.version + 1)
    with pytest.raises(InvalidRequest, match=r"Its choice is of version 2.* Nothing was done"):
        read_queued(JobId(7), newer, {})
    unchosen, choice = read_queued(JobId(7), replace(newer, choice=None), {})
    assert (unchosen, choice) == (operation, None)
