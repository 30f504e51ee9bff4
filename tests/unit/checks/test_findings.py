"""Each thing that ``gnt-cluster verify`` can find, in a cluster that lacks nothing else."""

import pytest
from msgspec.structs import replace

from common.model.backing import DrbdBacking, LvmBacking
from common.model.disk import Disk
from common.names import DiskId, MiB, NodeId
from common.noderpc.mirrors import MirrorDevice
from coordinator.checks.finding import Seen, Severity
from coordinator.checks.mirrors import check_devices
from coordinator.state.rows import Delete, Put
from tests.unit.checks.flaw import Flaw, facts, findings_of
from tests.unit.checks.flaws_of_instances import FLAWS_OF_INSTANCES
from tests.unit.checks.flaws_of_nodes import FLAWS_OF_NODES
from tests.unit.checks.flaws_of_roles import FLAWS_OF_ROLES
from tests.unit.checks.flaws_of_storage import FLAWS_OF_STORAGE
from tests.unit.checks.healthy import CLUSTER, HEALTHY, INSTANCE, SSCONF, STAMP, VERSION, report_of

MIRROR = DrbdBacking(
    data=LvmBacking(group="gantry", name="mirror.data"),
    meta=LvmBacking(group="gantry", name="mirror.meta"),
    port=11000, minors={NodeId("beta"): 3}, secret="s",
)  # fmt: skip

WITH_OPTIONS = (
    Put(replace(
        CLUSTER, enabled_disk_templates=("sharedfile", "drbd"), diskparams={"drbd": {
            "disk-custom": "--al-extents=67 --resync-rate=1M",
            "net-custom": "--ping-int=1 --unplug-watermark=16",
        }},
    )),
)  # fmt: skip
AREAS = (FLAWS_OF_ROLES, FLAWS_OF_NODES, FLAWS_OF_INSTANCES, FLAWS_OF_STORAGE)
FLAWS = {name: flaw for area in AREAS for name, flaw in area.items()}


def test_foreign_device_in_the_place_of_a_disks_is_named() -> None:
    disk = Disk(uuid=DiskId("mirror"), size=MiB(64), nodes=(NodeId("beta"),), backing=MIRROR)
    foreign = MirrorDevice(resource="precious", minor=3, disk=None)
    other = MirrorDevice(resource="precious2", minor=4, disk=None)
    nodes = {NodeId("beta"): report_of("beta", devices=(foreign, other))}
    seen = Seen(HEALTHY.apply([Put(disk)]).config, nodes, STAMP, SSCONF, VERSION)
    (found,) = check_devices(seen)
    assert (found.code, found.name) == ("ENODEDRBD", "beta")
    assert "that of precious, which is none of ours; the disk mirror has" in found.message


def test_options_that_only_the_former_drbd_of_a_node_takes_are_named() -> None:
    """No disk could be attached there."""
    assert findings_of(Flaw("", "", WITH_OPTIONS)) == []
    found = findings_of(Flaw("", "", WITH_OPTIONS, beta=facts(drbd_version="9.2.16")))
    ((name, message),) = [(f.name, f.message) for f in found if f.code == "ENODEDRBD"]
    assert name == "beta"
    assert "know --resync-rate in disk-custom or --unplug-watermark in net-custom" in message


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    assert findings_of(Flaw("", "")) == []


@pytest.mark.parametrize("name", FLAWS)
def test_it_is_found_and_nothing_else(name: str) -> None:
    flaw = FLAWS[name]
    found = findings_of(flaw)
    (finding,) = [f for f in found if f.severity is not Severity.NOTICE] or found
    assert finding.code == flaw.code
    assert flaw.says in finding.message
    assert finding.severity is flaw.severity


def test_no_two_flaws_have_the_same_name() -> None:
    assert len(FLAWS) == sum(len(area) for area in AREAS), "a flaw hides another one"


def test_a_file_that_all_nodes_share_is_named_once() -> None:
    assert len(findings_of(FLAWS["a file is nobody's"])) == 1


def test_a_finding_is_a_line_for_an_operator() -> None:
    (finding,) = findings_of(FLAWS["an instance is down"])
    assert str(finding) == "ERROR: instance web1: should run on alpha and does not"


def test_devices_of_a_removed_instance_are_named() -> None:
    found = findings_of(Flaw("", "", (Delete(INSTANCE),), alpha={"guests": (), "taps": ()}))
    assert {f.message for f in found} == {
        "the device disk belongs to no instance", "the device nic belongs to no instance",
    }  # fmt: skip
