"""Each parameter there is, given what is no value of it, is refused by name; nothing changes."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import pytest
from msgspec import inspect as info

from common.errors import InvalidRequest
from common.model.disk_parameters import DISK_PARAMETERS
from common.model.hypervisors import HYPERVISORS
from common.model.parameters import Backend, NicParameters, NodeParameters
from coordinator.operations.base import REGISTRY, VARIANTS, read_operation
from coordinator.operations.registry import load_all
from tests.sim.settings import create
from tests.support.clock import simulate
from tests.support.cluster import SimulatedCluster, simulated_cluster

NO_VALUES: tuple[Any, ...] = ([], {}, -7.5, "\0nonsense!?", [[{"x": 1}]])
TAKES_ANYTHING = {("OP_TEST_DUMMY", "result"), ("OP_TEST_DUMMY", "fail")}  # whatever JSON can say

NEW = {"instance_name": "web2", "disk_template": "sharedfile", "disks": [{"size": "64M"}]}
WHOLE: Mapping[str, Mapping[str, Any]] = {  # what has to be whole before single fields are read
    "OP_INSTANCE_CREATE": NEW | {"mode": "create"},
    "OP_INSTANCE_CREATE forthcoming": NEW | {"mode": "create", "forthcoming": True},
    "OP_INSTANCE_CREATE commit": NEW | {"mode": "create", "commit": True},
}

WEB1 = {"OP_ID": "OP_INSTANCE_SET_PARAMS", "instance_name": "web1"}
CLUSTER = {"OP_ID": "OP_CLUSTER_SET_PARAMS"}
GROUP = {"OP_ID": "OP_GROUP_SET_PARAMS", "group_name": "default"}
NODE = {"OP_ID": "OP_NODE_SET_PARAMS", "node_name": "beta"}
ADD = {"OP_ID": "OP_INSTANCE_CREATE"} | NEW | {"mode": "create"}


def of_operations() -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Yield each field of each operation, with orders in which it is given no value of it."""
    load_all()
    for opcode, usual in REGISTRY.items():
        for flag, kind in {"": usual, **VARIANTS.get(opcode, {})}.items():
            whole = WHOLE.get(f"{opcode} {flag}".strip(), {})
            for each in info.type_info(kind).fields:  # type: ignore[attr-defined]
                if (opcode, each.encode_name) not in TAKES_ANYTHING and each.encode_name != flag:
                    bad = [{**whole, each.encode_name: value} for value in NO_VALUES]
                    yield opcode, each.encode_name, [{"OP_ID": opcode} | one for one in bad]


def of_objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each parameter of what the cluster keeps, wherever it can be given no value of it."""
    for hypervisor, kind in HYPERVISORS.items():
        for name in _names(kind):
            yield name, CLUSTER | {"hvparams": {hypervisor: {name: []}}}
            yield name, CLUSTER | {"os_hvp": {"debian": {hypervisor: {name: []}}}}
    for name in _names(HYPERVISORS["kvm"]):
        yield name, WEB1 | {"hvparams": {name: []}}
        yield name, ADD | {"hvparams": {name: []}}
    for name in _names(Backend):
        for order in (CLUSTER, WEB1, ADD):
            yield name, order | {"beparams": {name: []}}
    for name in _names(NicParameters):
        yield name, CLUSTER | {"nicparams": {name: []}}
        yield name, WEB1 | {"nics": [["modify", 0, {name: []}]]}
        yield name, ADD | {"nics": [{name: []}]}
    for name in _names(NodeParameters):
        for order in (CLUSTER, GROUP, NODE):
            yield name, order | {"ndparams": {name: []}}
    for template, declared in DISK_PARAMETERS.items():
        for name in _names(declared):
            for order in (CLUSTER, GROUP):
                yield name, order | {"diskparams": {template: {name: []}}}


def _names(kind: Any) -> list[str]:
    return [each.encode_name for each in info.type_info(kind).fields]  # type: ignore[attr-defined]


def test_no_field_of_an_operation_takes_what_is_no_value_of_it() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for opcode, name, orders in of_operations():
            refusals = [await _refusal(cluster, order) for order in orders]
            assert any(name in told for told in refusals), f"{opcode}: {name}: {refusals}"

    _tell(story)


def test_no_parameter_takes_what_is_no_value_of_it_wherever_it_is_given() -> None:
    async def story(cluster: SimulatedCluster) -> None:
        for name, order in of_objects():
            with pytest.raises(InvalidRequest) as refused:
                await cluster.run(read_operation(order))
            assert name in refused.value.message, order

    _tell(story)


async def _refusal(cluster: SimulatedCluster, order: dict[str, Any]) -> str:
    """Return why an order is refused before it is a job, as a good one is: no job is before it."""
    order = order | {"depends": [[-1, []]]}
    try:
        await cluster.master.luxi("SubmitJob", [order])
    except InvalidRequest as refused:
        return refused.message
    return ""


def _tell(story: Callable[[SimulatedCluster], Awaitable[None]]) -> None:
    async def scenario() -> None:
        async with simulated_cluster() as cluster:
            await cluster.run(create("web1", "beta", start=False))
            before = await cluster.snapshot()
            await story(cluster)
            assert before.differences(await cluster.snapshot()) == []

    simulate(scenario())
