"""Placement of mirrored instances: on two nodes, both of which are promised."""

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NoCapacity, NotFound
from common.model.template import DiskTemplate
from common.names import GroupId, InstanceName
from coordinator.iallocator.requests import EvacuationMode
from coordinator.operations.instance.place import Place, named_place
from coordinator.operations.placement.allocators import AllocatorFailed
from coordinator.operations.placement.choose import place_elsewhere, place_new
from coordinator.operations.placement.fit import check_still_fits
from coordinator.operations.placement.growth import promise_of_secondary, take_space
from coordinator.operations.placement.look import Look, look_for
from coordinator.operations.placement.many import place_many
from coordinator.operations.placement.moves import OffNodes, plan_moves
from coordinator.operations.placement.promises import PlannedInstance
from coordinator.state.rows import Put
from tests.support.placing import cluster_of
from tests.unit.operations.mirrored import (
    ALPHA,
    BETA,
    GAMMA,
    NAMES,
    ROOMY,
    configured,
    facts,
    planned,
)

pytestmark = pytest.mark.usefixtures("mirrored_kind")


def test_a_mirrored_instance_is_given_two_nodes_and_both_are_promised() -> None:
    cluster, seen = cluster_of(configured(), ROOMY | {"beta": facts(space=100)})
    chosen = asyncio.run(place_new(cluster, ["hail"], planned()))
    assert {node.name for node in chosen.nodes} == {"alpha", "gamma"}
    assert seen.promised == [[node.uuid for node in chosen.nodes]]
    assert f"via iallocator hail: {chosen.nodes[0]}, {chosen.nodes[1]}" in seen.said[0]


def test_the_next_allocator_is_asked_when_one_finds_nothing_or_is_not_there() -> None:
    cluster, seen = cluster_of(configured(), ROOMY)
    assert asyncio.run(place_new(cluster, ["nobody", "hail"], planned())).allocator == "hail"
    assert seen.said[0].startswith("There is no allocator “nobody”")
    assert seen.said[0].endswith(" The next allocator is asked.")
    cluster, seen = cluster_of(configured(), dict.fromkeys(NAMES, facts(space=100)))
    with pytest.raises(NotFound, match="nobody"):
        asyncio.run(place_new(cluster, ["hail", "nobody"], planned()))
    assert seen.said[0].startswith("Can't compute nodes using iallocator 'hail': No two nodes can")
    assert not seen.promised


def test_a_program_is_told_the_group_and_has_to_keep_to_it(tmp_path: Path) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    group = GroupId("group")
    cluster, seen = cluster_of(configured(), ROOMY, ["gamma", "beta"], tmp_path)
    asyncio.run(place_new(cluster, ["hail"], planned()._replace(group=group)))
    assert seen.asked[0]["group_name"] == "default"
    cluster, _ = cluster_of(configured(), ROOMY, ["gamma", "beta"], tmp_path)
    with pytest.raises(AllocatorFailed, match="gamma was chosen, and is not in the group"):
        asyncio.run(place_new(cluster, ["hail"], planned()._replace(group=GroupId("other"))))


def test_a_program_that_leaves_an_instance_where_it_is_has_no_answer(tmp_path: Path) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    there = planned("web1", ALPHA, BETA)
    answer = [[], [["web1", "it likes it there"]], []]
    cluster, seen = cluster_of(configured(there), ROOMY, answer, tmp_path)
    with pytest.raises(NoCapacity, match="'hail': web1: it likes it there") as caught:
        asyncio.run(
            plan_moves(cluster, ["hail"], OffNodes((InstanceName("web1"),), EvacuationMode.ALL))
        )
    assert caught.value.detail == {"failed": ["web1"]}
    assert not seen.promised


def test_a_program_is_asked_for_two_nodes_and_has_to_name_two(tmp_path: Path) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    cluster, seen = cluster_of(configured(), ROOMY, ["gamma", "beta"], tmp_path)
    chosen = asyncio.run(place_new(cluster, ["hail"], planned()))
    assert [node.name for node in chosen.nodes] == ["gamma", "beta"]
    assert seen.asked[0]["required_nodes"] == 2
    assert seen.promised == [["gamma", "beta"]]
    for answer in (["gamma"], ["gamma", "gamma"], ["gamma", "beta", "alpha"]):
        cluster, seen = cluster_of(configured(), ROOMY, answer, tmp_path)
        with pytest.raises(AllocatorFailed):
            asyncio.run(place_new(cluster, ["hail"], planned()))
        assert not seen.promised


def test_many_mirrored_instances_are_given_two_nodes_each() -> None:
    cluster, seen = cluster_of(configured(), ROOMY)
    wanted = [planned(f"web{number}", memory=3000) for number in range(3)]
    chosen = asyncio.run(place_many(cluster, ["hail"], wanted))
    assert all(len(set(nodes)) == 2 for nodes in chosen.values())
    assert seen.promised == [list(nodes) for nodes in chosen.values()]
    assert len(chosen) == 2  # their memory is kept free on the third node


def test_what_was_chosen_is_checked_on_both_nodes() -> None:
    new = planned()
    cluster, seen = cluster_of(configured(), ROOMY | {"beta": facts(space=1000)})
    with pytest.raises(NoCapacity, match="beta has 1000 MiB left"):
        asyncio.run(check_still_fits(cluster, new, [ALPHA, BETA], built_in=False))
    asyncio.run(check_still_fits(cluster, new, [ALPHA, GAMMA], built_in=True))
    assert seen.promised == [["alpha", "gamma"]]


def test_that_nodes_would_do_the_other_way_round_is_not_enough() -> None:
    """gamma could keep a copy, and has too few processors for the instance itself."""
    config = configured()
    live = ROOMY | {"gamma": replace(facts(), cpus=1)}
    config = config.apply([Put(replace(config.cluster, ipolicy=replace(
        config.cluster.ipolicy, vcpu_ratio=1.0
    )))])  # fmt: skip
    one = planned()
    new = PlannedInstance(replace(one.instance, beparams={"vcpus": 2}), one.disks)
    cluster, _ = cluster_of(config, live)
    asyncio.run(check_still_fits(cluster, new, [ALPHA, GAMMA], built_in=True))
    with pytest.raises(NoCapacity, match="no longer be on gamma with alpha as its secondary"):
        asyncio.run(check_still_fits(cluster, new, [GAMMA, ALPHA], built_in=True))


def test_another_secondary_node_is_chosen_and_promised() -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), ROOMY)
    chosen = asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))
    assert [node.name for node in chosen.nodes] == ["gamma"]
    assert seen.promised == [["alpha", "gamma"]]
    (after,) = Look(cluster.config, {}, cluster.placing.promises.standing()).snapshot.instances
    assert (after.primary, after.secondary) == (0, 2)


def test_a_program_is_asked_for_another_secondary_node_instead_of_the_present(
    tmp_path: Path,
) -> None:
    program = tmp_path / "hail"
    program.write_text("")
    program.chmod(0o755)
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), ROOMY, ["gamma"], tmp_path)
    chosen = asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))
    assert [node.name for node in chosen.nodes] == ["gamma"]
    assert (seen.asked[0]["type"], seen.asked[0]["relocate_from"]) == ("relocate", ["beta"])
    assert seen.asked[0]["required_nodes"] == 1


def test_a_node_without_space_is_not_chosen_as_secondary() -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), ROOMY | {"gamma": facts(space=1023)})
    with pytest.raises(NoCapacity) as caught:
        asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))
    assert caught.value.message == (
        "Can't compute nodes using iallocator 'hail': No other node of group default can be the "
        "secondary one of web1: gamma comes nearest, with 1023 MiB left in the directory "
        "/srv/files where 1024 are needed."
    )
    with pytest.raises(NoCapacity, match="gamma has 1023 MiB left"):
        promise = promise_of_secondary(there.instance, there.disks, GAMMA)
        asyncio.run(take_space(cluster, promise, [GAMMA]))
    assert not seen.promised


@pytest.mark.parametrize("evacuates", [False, True])
def test_nobody_is_refused_a_node_for_a_report_that_is_a_second_old(evacuates: bool) -> None:
    there = planned("web1", ALPHA, BETA)
    cluster, seen = cluster_of(configured(there), {})

    async def choose() -> None:
        seen.live = ROOMY | {"gamma": facts(space=1023)}
        await look_for(cluster)
        seen.live = ROOMY
        if evacuates:
            question = OffNodes((InstanceName("web1"),), EvacuationMode.SECONDARY)
            await plan_moves(cluster, ["hail"], question)
        else:
            await place_elsewhere(cluster, ["hail"], there.instance)

    asyncio.run(choose())
    assert seen.promised == [["alpha", "gamma"]]


def test_only_one_secondary_node_is_replaced() -> None:
    there = planned("web1", ALPHA)
    cluster, _ = cluster_of(configured(there), ROOMY)
    with pytest.raises(Conflict, match="has 0 secondary nodes"):
        asyncio.run(place_elsewhere(cluster, ["hail"], there.instance))


def test_named_nodes_are_as_many_as_the_template_needs() -> None:
    config = configured()
    assert named_place(config, DiskTemplate.DRBD, ["beta", "alpha"]) == Place(
        node=BETA.ref, others=(ALPHA.ref,)
    )
    assert named_place(config, DiskTemplate.FILE, ["beta"]) == Place(node=BETA.ref)
    with pytest.raises(InvalidRequest, match="drbd has two nodes, as in -n PRIMARY:SECONDARY"):
        named_place(config, DiskTemplate.DRBD, ["beta"])
    with pytest.raises(InvalidRequest, match="file has one node; given: beta, alpha"):
        named_place(config, DiskTemplate.FILE, ["beta", "alpha"])
    with pytest.raises(InvalidRequest, match="has to be another one than beta"):
        named_place(config, DiskTemplate.DRBD, ["beta", "beta"])
    with pytest.raises(NotFound, match="delta"):
        named_place(config, DiskTemplate.DRBD, ["beta", "delta"])
