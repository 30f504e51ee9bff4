"""What verify finds where storage is exclusive, in a group of alpha and beta."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from common.model.backing import LvmBacking
from common.model.disk import Disk
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
from common.model.stored import Stored
from common.model.template import DiskTemplate
from common.names import InstanceId, MiB, NodeId
from common.noderpc.disks import VolumeListing
from common.noderpc.facts import Spindles, StorageReport
from coordinator.checks.exclusive import (
    check_apart,
    check_instances_apart,
    check_physical_volumes,
    check_sizes_in_groups,
)
from coordinator.checks.finding import Finding, NodeReport, Seen
from coordinator.checks.parameters import check_stored_parameters
from coordinator.state.rows import Put
from tests.unit.checks.healthy import (
    CLUSTER,
    DISK,
    HEALTHY,
    INSTANCE,
    SSCONF,
    STAMP,
    VERSION,
    WEB1,
    node,
    report_of,
)

APART = replace(CLUSTER, volume_group_name="vg", ndparams={"exclusive_storage": True})
PLAIN = replace(INSTANCE, disk_template=DiskTemplate.PLAIN)
BACKING = LvmBacking(group="vg", name="disk.disk")
OWN = Disk(uuid=DISK, size=MiB(64), nodes=(NodeId("alpha"),), backing=BACKING, spindles=1)
VOLUME = VolumeListing(
    group="vg", name="disk.disk", size=MiB(64), disk=DISK, instance=WEB1, devices=("/dev/sdb",)
)
FIT = Spindles(total=2, free=1, smallest=MiB(1000), largest=MiB(1010))


def told(name: str, spindles: Spindles | None = FIT, *volumes: VolumeListing) -> NodeReport:
    storage = StorageReport(
        pool=Pool(kind=PoolKind.VOLUME_GROUP, name="vg"), total=MiB(2000), free=MiB(1000),
        usable=True, spindles=spindles,
    )  # fmt: skip
    report = report_of(name)
    return report._replace(facts=replace(report.facts, storage=(storage,)), volumes=volumes)


def found(
    *changed: Stored, alpha: NodeReport | None = None, beta: NodeReport | None = None
) -> list[Finding]:
    """Look at alpha, which has web1, and at beta."""
    config = HEALTHY.apply(map(Put, (APART, PLAIN, OWN, *changed))).config
    nodes = {
        NodeId("alpha"): alpha or told("alpha", FIT, VOLUME),
        NodeId("beta"): beta or told("beta"),
    }
    seen = Seen(config, nodes, STAMP, SSCONF, VERSION)
    checks = (
        check_physical_volumes, check_sizes_in_groups, check_apart, check_instances_apart,
        check_stored_parameters,
    )  # fmt: skip
    return [finding for check in checks for finding in check(seen)]


def codes(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    return [(each.code, each.name) for each in findings]


def test_nothing_is_found_where_each_has_its_own() -> None:
    kept = replace(VOLUME, name="kept.snapshot")  # an instance's own volumes may be together
    assert found(alpha=told("alpha", FIT, VOLUME, kept)) == []


def test_a_node_that_does_not_tell_what_it_has_is_named() -> None:
    (finding,) = found(beta=told("beta", None))
    assert (finding.code, finding.name) == ("ENODELVM", "beta")
    assert "does not tell of its physical volumes" in finding.message
    assert found(replace(APART, ndparams={}), beta=told("beta", None)) == []


def test_sizes_that_differ_are_named_by_node_and_by_group() -> None:
    small = Spindles(total=1, free=1, smallest=MiB(900), largest=MiB(900))
    (finding,) = found(beta=told("beta", small))
    assert (finding.code, finding.kind, finding.name) == (
        "EGROUPDIFFERENTPVSIZE", "group", "default"
    )  # fmt: skip
    assert "has 900 MiB (beta) and the largest one 1010 (alpha)" in finding.message
    mixed = Spindles(total=2, free=1, smallest=MiB(900), largest=MiB(1000))
    assert codes(found(beta=told("beta", mixed))) == [
        ("ENODELVM", "beta"), ("EGROUPDIFFERENTPVSIZE", "default"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("other", "whose"),
    [
        ({"instance": InstanceId("web9"), "disk": "gone"}, "the disk gone, web1"),
        ({"instance": None, "disk": None, "name": "root"}, "the volume vg/root, web1"),
    ],
)
def test_who_shares_a_physical_volume_is_named(other: dict[str, Any], whose: str) -> None:
    there = replace(VOLUME, **{"name": "gone.disk", **other, "devices": ("/dev/sda", "/dev/sdb")})
    (finding,) = found(alpha=told("alpha", FIT, VOLUME, there))
    assert (finding.code, finding.name) == ("ENODELVM", "alpha")
    assert f"the physical volume /dev/sdb is shared by {whose}" in finding.message
    assert found(replace(APART, ndparams={}), alpha=told("alpha", FIT, VOLUME, there)) == []


def test_what_others_share_among_themselves_is_theirs() -> None:
    root, swap = (
        VolumeListing(group="vg", name=name, size=MiB(9), devices=("/dev/sda",))
        for name in ("root", "swap")
    )
    assert found(alpha=told("alpha", FIT, VOLUME, root, swap)) == []


def test_disks_that_cannot_be_apart_or_do_not_say_how_are_named() -> None:
    assert codes(found(replace(PLAIN, disk_template=DiskTemplate.SHAREDFILE))) == [
        ("EINSTANCEUNSUITABLENODE", "web1")
    ]
    thin = replace(OWN, backing=replace(BACKING, thin_pool="thin"))
    assert codes(found(thin)) == [("EINSTANCEUNSUITABLENODE", "web1")]
    (finding,) = found(replace(OWN, spindles=None))
    assert finding.code == "EINSTANCEMISSINGCFGPARAMETER"
    assert "“gnt-cluster repair-disk-sizes web1” finds it" in finding.message


def test_it_is_not_set_for_one_node() -> None:
    (finding,) = found(node("beta", ndparams={"exclusive_storage": True}))
    assert (finding.code, finding.name) == ("ECLUSTERCFG", "beta")
    assert "is set for the cluster or for a group, not for beta alone" in finding.message
