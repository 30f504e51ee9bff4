"""Where an instance goes, and what an operator reads when it goes nowhere."""

from typing import Any

import pytest

from common.errors import NoCapacity
from common.model.allocation_policy import AllocationPolicy
from common.model.template import DiskTemplate
from common.names import MiB
from common.record import replace
from coordinator.allocator.refusal import Reason
from coordinator.allocator.request import Allocate, Survey
from coordinator.allocator.snapshot import Snapshot
from tests.unit.allocator.clusters import OURS
from tests.unit.allocator.small import DEFAULT, cluster, demand, instance, node, place, survey

THREE = cluster(node("alpha", free=4000), node("beta"), node("gamma", free=6000))
MIRRORED: dict[str, Any] = {
    "template": DiskTemplate.DRBD,
    "disk": MiB(10368),
    "disks": (MiB(10240),),
    "memory": MiB(1024),
}


def refusal(snapshot: Snapshot, request: Allocate) -> str:
    with pytest.raises(NoCapacity) as caught:
        place(snapshot, request)
    return caught.value.message


def home(found: Survey) -> int:
    """The group it goes to."""
    assert found.best is not None
    return found.best.group


def test_the_emptiest_node_is_chosen_and_the_others_follow() -> None:
    placement = place(THREE, Allocate(instance=demand()))
    assert placement.nodes == ("beta",)
    assert [choice.nodes for choice in placement.choices[1:]] == [("gamma",), ("alpha",)]
    assert placement.considered == 3
    assert not placement.refused


def test_among_equals_the_last_node_is_chosen() -> None:
    snapshot = cluster(node("alpha"), node("beta"), node("gamma"))
    assert place(snapshot, Allocate(instance=demand())).nodes == ("gamma",)


def test_a_mirrored_instance_gets_two_nodes() -> None:
    placement = place(THREE, Allocate(instance=demand(**MIRRORED)))
    assert placement.nodes == ("beta", "gamma")
    assert placement.considered == 6


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ({"offline": True}, Reason.OFFLINE),
        ({"drained": True}, Reason.DRAINED),
        ({"vm_capable": False}, Reason.NOT_VM_CAPABLE),
    ],
)
def test_a_node_out_of_service_gets_nothing(flag: dict[str, Any], reason: Reason) -> None:
    alpha, beta, gamma = THREE.nodes
    snapshot = replace(THREE, nodes=(alpha, replace(beta, **flag), gamma))
    placement = place(snapshot, Allocate(instance=demand()))
    assert placement.nodes == ("gamma",)
    assert placement.refused == {"beta": reason}


def test_the_refusal_counts_the_reasons() -> None:
    snapshot = cluster(node("alpha", free=500), node("beta", free=300), node("gamma", offline=True))
    assert refusal(snapshot, Allocate(instance=demand())) == (
        "No node can take instance web1: alpha comes nearest, with 500 MiB of memory free where "
        "more than 512 are needed; 1 node lacks memory, 1 is offline."
    )


def test_the_refusal_names_each_node_for_programs() -> None:
    snapshot = cluster(node("alpha", free=500), node("beta", offline=True))
    with pytest.raises(NoCapacity) as caught:
        place(snapshot, Allocate(instance=demand()))
    assert caught.value.detail["refused"] == {"alpha": "memory", "beta": "offline"}


def test_a_disk_larger_than_any_node_has() -> None:
    wanted = demand(template=DiskTemplate.PLAIN, disk=MiB(200000), disks=(MiB(200000),))
    assert refusal(THREE, Allocate(instance=wanted)) == (
        "No node can take instance web1: alpha comes nearest, with 102400 MiB of disk space free "
        "where more than 200000 are needed; 2 nodes lack disk space."
    )


def test_one_node_cannot_hold_both_copies() -> None:
    snapshot = cluster(node("alpha"), node("beta", offline=True))
    assert refusal(snapshot, Allocate(instance=demand(**MIRRORED))) == (
        "No two nodes can take instance web1: 1 node finds no second node, 1 is offline."
    )


def test_a_cluster_without_nodes() -> None:
    message = refusal(cluster(), Allocate(instance=demand()))
    assert message == "No node can take instance web1: there is none."


def test_more_virtual_processors_than_the_policy_allows_per_real_one() -> None:
    full = [instance(f"i{i}", "beta", vcpus=8, memory=MiB(32)) for i in range(4)]
    snapshot = replace(THREE, instances=tuple(full))
    placement = place(snapshot, Allocate(instance=demand()))
    assert placement.refused == {"beta": Reason.CPU}


def test_a_size_that_the_policy_forbids() -> None:
    message = refusal(THREE, Allocate(instance=demand(memory=MiB(40000))))
    assert message == (
        "No node can take instance web1: the policy of group default allows 32 to 32768 MiB of "
        "memory, not 40000."
    )


def test_processors_that_are_lacking_are_counted() -> None:
    full = [instance(f"i{n}", name, vcpus=8, memory=MiB(32)) for name in ("alpha", "beta", "gamma")
            for n in range(4)]  # fmt: skip
    message = refusal(replace(THREE, instances=tuple(full)), Allocate(instance=demand(vcpus=2)))
    assert message == (
        "No node can take instance web1: alpha comes nearest, with 0 of 32 virtual processors "
        "left where 2 are needed; 2 nodes lack processors."
    )


def test_a_template_that_the_policy_forbids() -> None:
    policy = replace(OURS, disk_templates=("drbd",))
    snapshot = replace(THREE, groups=(replace(DEFAULT, policy=policy),))
    message = refusal(snapshot, Allocate(instance=demand()))
    assert message.endswith(": the policy of group default allows drbd, not sharedfile.")


def test_instances_with_the_same_exclusion_tag_are_kept_apart() -> None:
    dns = frozenset({"service:dns"})
    snapshot = replace(
        THREE,
        instances=(instance("dns1", "beta", tags=dns),),
        tags=("htools:iextags:service",),
    )
    placement = place(snapshot, Allocate(instance=demand("dns2", tags=dns)))
    assert placement.nodes == ("gamma",)
    assert placement.refused == {"beta": Reason.TAGS}


def test_memory_kept_for_a_peer_is_not_given_away() -> None:
    snapshot = cluster(
        node("alpha", free=2000),
        node("beta", free=8000),
        instances=(instance("db", "alpha", "beta", **(MIRRORED | {"memory": MiB(6000)})),),
    )
    found = survey(snapshot, Allocate(instance=demand(memory=MiB(2000)), check_redundancy=False))
    assert found.refused == {"alpha": Reason.MEMORY, "beta": Reason.MEMORY_N1}


def test_an_instance_that_is_down_takes_no_memory_but_its_peer_keeps_some() -> None:
    snapshot = cluster(
        node("alpha", free=8000),
        node("beta", free=8000),
        instances=(
            instance(
                "db", "alpha", "beta", status="ADMIN_down", **(MIRRORED | {"memory": MiB(7000)})
            ),
        ),
    )
    found = survey(snapshot, Allocate(instance=demand(memory=MiB(1500)), check_redundancy=False))
    assert found.refused == {"alpha": Reason.MEMORY, "beta": Reason.MEMORY_N1}


class TestRedundancy:
    """Every node must stay one that could be emptied."""

    nearly_full = cluster(
        node("alpha", free=2000),
        node("beta", free=2000),
        instances=(
            instance("a", "alpha", memory=MiB(1500)),
            instance("b", "beta", memory=MiB(1500)),
        ),
    )

    def test_a_placement_that_would_break_it_is_refused(self) -> None:
        message = refusal(self.nearly_full, Allocate(instance=demand(memory=MiB(1000))))
        assert message == (
            "No node can take instance web1: 2 nodes have room, but beta could then not be "
            "emptied onto others."
        )

    def test_the_operator_may_say_it_does_not_matter(self) -> None:
        request = Allocate(instance=demand(memory=MiB(1000)), check_redundancy=False)
        assert place(self.nearly_full, request).nodes == ("beta",)

    def test_a_small_instance_still_fits(self) -> None:
        assert place(self.nearly_full, Allocate(instance=demand(memory=MiB(400)))).nodes

    def test_the_only_node_of_a_cluster_can_never_be_emptied(self) -> None:
        snapshot = cluster(node("alpha"))
        message = refusal(snapshot, Allocate(instance=demand()))
        assert message.endswith("alpha has room, but it could then not be emptied onto others.")
        assert place(snapshot, Allocate(instance=demand(), check_redundancy=False)).nodes


class TestGroups:
    """Which group, and who may ask for which."""

    @staticmethod
    def two(first: AllocationPolicy, second: AllocationPolicy) -> Snapshot:
        """Two groups alike, with two nodes each."""
        one = replace(DEFAULT, name="one", alloc_policy=first, networks=("lan",))
        two = replace(DEFAULT, name="two", alloc_policy=second)
        return cluster(
            *(
                node(f"{name}{i}", group=at)
                for at, name in enumerate(("one", "two"))
                for i in (1, 2)
            ),
            groups=(one, two),
        )

    def test_among_equals_the_last_group_is_chosen(self) -> None:
        snapshot = self.two(AllocationPolicy.PREFERRED, AllocationPolicy.PREFERRED)
        assert place(snapshot, Allocate(instance=demand())).nodes == ("two2",)

    def test_a_last_resort_comes_last(self) -> None:
        snapshot = self.two(AllocationPolicy.PREFERRED, AllocationPolicy.LAST_RESORT)
        assert home(place(snapshot, Allocate(instance=demand()))) == 0
        full = tuple(replace(n, free_memory=100) if n.group == 0 else n for n in snapshot.nodes)
        assert home(place(replace(snapshot, nodes=full), Allocate(instance=demand()))) == 1

    def test_a_closed_group_takes_only_who_asks_for_it(self) -> None:
        snapshot = self.two(AllocationPolicy.PREFERRED, AllocationPolicy.UNALLOCABLE)
        placement = place(snapshot, Allocate(instance=demand()))
        assert home(placement) == 0
        assert placement.refused == dict.fromkeys(("two1", "two2"), Reason.UNALLOCABLE)
        asked = Allocate(instance=demand(), group=1)
        assert home(place(snapshot, asked)) == 1

    def test_a_group_without_the_network_is_left_out(self) -> None:
        snapshot = self.two(AllocationPolicy.PREFERRED, AllocationPolicy.PREFERRED)
        placement = place(snapshot, Allocate(instance=demand(), networks=frozenset({"lan"})))
        assert home(placement) == 0
        assert placement.refused == dict.fromkeys(("two1", "two2"), Reason.NETWORK)

    def test_nodes_of_other_groups_are_named_as_such(self) -> None:
        snapshot = self.two(AllocationPolicy.PREFERRED, AllocationPolicy.PREFERRED)
        placement = place(snapshot, Allocate(instance=demand(), group=0))
        assert placement.refused == dict.fromkeys(("two1", "two2"), Reason.GROUP)

    def test_a_pair_stays_in_one_group(self) -> None:
        snapshot = self.two(AllocationPolicy.PREFERRED, AllocationPolicy.PREFERRED)
        placement = place(snapshot, Allocate(instance=demand(**MIRRORED)))
        assert placement.nodes == ("two2", "two1")


def test_only_the_nodes_asked_for() -> None:
    among = frozenset({"alpha"})
    placement = place(THREE, Allocate(instance=demand(), among=among))
    assert placement.nodes == ("alpha",)
    assert placement.refused == dict.fromkeys(("beta", "gamma"), Reason.RESTRICTED)


def test_a_forthcoming_instance_takes_what_will_be_free() -> None:
    reserved = tuple(
        instance(f"i{i}", "beta", memory=MiB(2600), forthcoming=True) for i in range(3)
    )
    found = survey(replace(THREE, instances=reserved), Allocate(instance=demand()))
    assert found.refused == {"beta": Reason.MEMORY}


def test_the_picture_is_left_as_it_was() -> None:
    first, then = (place(THREE, Allocate(instance=demand())) for _ in range(2))
    assert (then.choices, then.score_before, then.refused) == (
        first.choices, first.score_before, first.refused,
    )  # fmt: skip
    assert then.groups[0].failures == first.groups[0].failures
