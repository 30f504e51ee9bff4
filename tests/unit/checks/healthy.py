"""A cluster in which nothing is to be found."""

from typing import Any

from common.model.backing import FileBacking
from common.model.cluster import Cluster
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import Node
from common.model.stamp import Stamp
from common.model.template import DiskTemplate
from common.names import (
    ClusterId,
    ClusterName,
    DiskId,
    Epoch,
    GroupId,
    GroupName,
    InstanceId,
    InstanceName,
    KeyId,
    MiB,
    NicId,
    NodeId,
    NodeName,
    Serial,
)
from common.noderpc.facts import NodeFacts
from common.noderpc.files import FileReport
from common.noderpc.instances import GuestReport, GuestState
from common.noderpc.mastership import Ballot
from common.noderpc.network import TapReport
from common.noderpc.operating_systems import DefinitionReport
from common.noderpc.providers import ProviderReport
from common.noderpc.roster import HeldRoster
from common.revoked_keys import RevokedKeys
from coordinator.checks.finding import NodeReport
from coordinator.state.rows import Put
from coordinator.state.state import State

NOW = 1_800_000_000.0
VERSION = "1.0"
STAMP = Stamp(epoch=Epoch(3), serial=Serial(70), digest="d")
SSCONF = {"master_node": "digest"}
PATH = "/srv/shared/web1/disk.raw"

WEB1, DISK, NIC = InstanceId("web1"), DiskId("disk"), NicId("nic")
GUEST = GuestReport(id=WEB1, name=InstanceName("web1"), state=GuestState.RUNNING,
                    memory=MiB(128), vcpus=1, nics=(NIC,))  # fmt: skip
DEBIAN = DefinitionReport(name="debian", variants=("stable",), api_versions=(20,))
SHELF = ProviderReport(name="shelf", path="/usr/share/ganeti/extstorage/shelf")
TAP = TapReport(name="gntnic", nic=NIC, instance=WEB1, link="br0")


def node(name: str, **fields: Any) -> Node:
    return Node(
        uuid=NodeId(name), name=NodeName(name), group=GroupId("group"),
        **{
            "primary_ip": "192.0.2.1", "master_candidate": True, "key": KeyId(f"of {name}"),
            **fields,
        },
    )  # fmt: skip


def listening(**fields: Any) -> HeldRoster:
    """Return the roster of a node as it tells it; by default it names nobody."""
    nobody: dict[str, Any] = {
        "epoch": STAMP.epoch,
        "serial": STAMP.serial,
        "candidates": {},
        "following": {},
    }
    return HeldRoster(**(nobody | {"revoked": RevokedKeys().held} | fields))


def report_of(name: str, **fields: Any) -> NodeReport:
    facts = NodeFacts(
        name=NodeName(name), version=VERSION, boot_id="b", clock=NOW, memory_total=MiB(4096),
        memory_free=MiB(2048), memory_dom0=MiB(512), cpus=4, cpu_sockets=1, cpu_nodes=1,
        hypervisors={"kvm": "7.2"}, memory_locked=True, drbd_version="8.4.11",
    )  # fmt: skip
    runs_here = name == "alpha"
    report = NodeReport(
        facts=facts, guests=(GUEST,) if runs_here else (), taps=(TAP,) if runs_here else (),
        disk_files=(PATH,), volumes=(), bad_disks={},
        ssconf={"master_node": FileReport(digest="digest")},
        ballot=Ballot(master=NodeName("alpha"), epoch=Epoch(3), stamp=STAMP),
        roster=listening(), links={"br0": True}, asked_at=NOW, mirrors={}, devices=(),
        systems=(DEBIAN,), providers=(SHELF,), master_device="",
        files={"/etc/hosts": "usual"}, programs={},
    )  # fmt: skip
    return report._replace(**fields)


CLUSTER = Cluster(
    uuid=ClusterId("cluster"), name=ClusterName("test"), master=NodeId("alpha"),
    shared_file_storage_dir="/srv/shared",
)  # fmt: skip
INSTANCE = Instance(
    uuid=WEB1, name=InstanceName("web1"), primary_node=NodeId("alpha"),
    admin_state=AdminState.UP, hypervisor="kvm", disk_template=DiskTemplate.SHAREDFILE,
    disks=(DISK,), nics=(NIC,),
)  # fmt: skip
HEALTHY = State().apply(
    Put(item)
    for item in (
        CLUSTER, Group(uuid=GroupId("group"), name=GroupName("default")),
        node("alpha"), node("beta"), node("gamma"), node("delta"), INSTANCE,
        Disk(uuid=DISK, size=MiB(64), backing=FileBacking(path=PATH, shared=True)),
        Nic(uuid=NIC, mac="aa:00:00:00:00:01"),
    )
)  # fmt: skip
