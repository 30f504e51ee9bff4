"""Whether a node with exclusive storage is right for disks, and has as many spindles."""

import pytest
from msgspec.structs import replace

from common.messages import to_json
from common.model.backing import LvmBacking
from common.names import MiB, NodeId
from common.noderpc.facts import NodeFacts, Spindles, StorageReport
from coordinator.disks.exclusive import free_space, spindles_told
from coordinator.disks.plain import PLAIN
from coordinator.operations.placement.apart import find_unfit
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.promises import PlannedInstance, Promise
from coordinator.operations.placement.space import counts, shortages
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from tests.unit.operations.test_pools_of_nodes import (
    ALPHA,
    NODES,
    SLOW,
    configured,
    facts,
    planned,
    volume,
)

FIT = Spindles(total=4, free=3, smallest=MiB(1000), largest=MiB(1000))


def exclusive(*there: PlannedInstance) -> Config:
    config = configured(*there)
    cluster = replace(config.cluster, ndparams={"exclusive_storage": True})
    items = [cluster, *config.groups.values(), *NODES]
    items += [item for one in there for item in (one.instance, *one.disks)]
    return State().apply(map(Put, items)).config


def telling(spindles: Spindles | None) -> NodeFacts:
    pool = StorageReport(pool=SLOW, total=MiB(4000), free=MiB(3500), usable=True, spindles=spindles)
    return replace(facts(), storage=(pool,))


def look_at(config: Config, *promised: Promise, spindles: Spindles | None = FIT) -> Look:
    return Look(config, {node.uuid: telling(spindles) for node in NODES}, promised)


def of(name: str, *spindles: int | None, size: int = 500, here: bool = False) -> PlannedInstance:
    backings = [volume(f"{name}{number}", "slow") for number in range(len(spindles))]
    made = planned(name, *backings, size=size, on=(ALPHA,) if here else ())
    disks = (replace(disk, spindles=n) for disk, n in zip(made.disks, spindles, strict=True))
    return made._replace(disks=tuple(disks))


def why(look: Look, one: PlannedInstance) -> str:
    return str(find_unfit(look, ALPHA, one) or "")


def test_a_node_that_is_too_old_to_tell_gets_no_disks() -> None:
    look = look_at(exclusive(), spindles=None)
    assert why(look, of("web1", 1)) == (
        "has exclusive storage, and does not tell what the volume group slow is made of"
    )
    assert {str(each) for each in shortages(look, of("web1", 1)).values()} == {
        why(look, of("web1", 1))
    }
    assert look.free_spindles(ALPHA, SLOW) is None


def test_every_disk_says_how_many_it_has_and_has_enough() -> None:
    look = look_at(exclusive())
    assert why(look, of("web1", 1, 1)) == ""
    assert "say how many spindles disk 1 has for itself" in why(look, of("web1", 1, None))
    assert "disk 0 needs 2 of them for its 971 MiB, and has 1" in why(look, of("w", 1, size=971))
    assert why(look, of("web1", 2, size=1940)) == ""


def test_nothing_is_put_in_a_thin_pool_there() -> None:
    one = of("web1", 1)
    (disk,) = one.disks
    thin = replace(disk, backing=LvmBacking(group="slow", name="x", thin_pool="thin"))
    assert "nothing is in a thin pool" in why(look_at(exclusive()), one._replace(disks=(thin,)))


def test_what_is_there_already_is_judged_by_what_it_gets_only() -> None:
    """It may be from before storage was exclusive."""
    present = of("web1", None, 1, size=3000, here=True)
    look = look_at(exclusive(present))
    assert why(look, present) == ""
    larger = present._replace(disks=tuple(replace(d, size=MiB(3001)) for d in present.disks))
    assert "disk 1 needs 4 of them" in why(look, larger)


def test_spindles_count_there_and_mib_elsewhere() -> None:
    wanted = of("web1", 2, 2)
    assert {str(each) for each in shortages(look_at(exclusive()), wanted).values()} == {
        "has 3 spindles left in the volume group slow, and 4 spindles are needed"
    }
    assert shortages(look_at(configured()), wanted) == {}
    assert counts(look_at(exclusive()), of("web1", 1).disks) == {
        "alpha": 3, "beta": 3, "gamma": 3
    }  # fmt: skip
    assert counts(look_at(configured()), of("web1", 1).disks) == {
        "alpha": 7, "beta": 7, "gamma": 7
    }  # fmt: skip


def test_what_is_promised_is_taken() -> None:
    coming = of("web1", 2, here=True)
    promise = Promise(coming.instance.uuid, ALPHA.uuid, planned=coming)
    look = look_at(exclusive(), promise)
    assert look.free_spindles(ALPHA, SLOW) == 1
    assert look.free_space(ALPHA, SLOW) == 970
    assert look_at(exclusive(coming), promise).free_spindles(ALPHA, SLOW) == 3  # it has come


@pytest.mark.parametrize(("spindles", "told"), [(2, 2), (None, 0)])
def test_nodes_are_told_of_it_only_where_it_counts(spindles: int | None, told: int) -> None:
    one = of("web1", spindles, here=True)
    (disk,) = one.disks
    assert PLAIN.spec(exclusive(one), one.instance, disk).spindles == told
    assert PLAIN.spec(configured(one), one.instance, disk).spindles is None
    # A node that is older refuses what it does not know, and is not told where it does not matter.
    assert b"spindles" in to_json(PLAIN.spec(exclusive(one), one.instance, disk))
    assert b"spindles" not in to_json(PLAIN.spec(configured(one), one.instance, disk))
    elsewhere = replace(disk, nodes=(NodeId("gone"),))
    assert spindles_told(configured(one), elsewhere) is None


def test_space_is_that_of_whole_ones_where_it_counts() -> None:
    (report,) = telling(FIT).storage
    assert free_space(report, exclusive=True) == 3 * 970
    assert free_space(report, exclusive=False) == 3500
    (old,) = telling(None).storage
    assert free_space(old, exclusive=True) == 3500
