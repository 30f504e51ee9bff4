"""Stories of instances that come from another cluster, or go to one, which is told to by hand."""

from collections.abc import Mapping
from typing import Any

from common.messages import to_builtins
from common.model.template import DiskTemplate
from common.names import InstanceName, NodeName
from common.noderpc.copies import Offer, Stranger
from common.noderpc.disks import DiskSpec
from coordinator.operations.backup.export import ExportInstance
from coordinator.operations.backup.prepare import PrepareExport, name_of_key
from coordinator.operations.backup.trust import Destination, Trust
from coordinator.operations.base import read_operation
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.instance.create import CreateInstance
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.instance.startup import StartInstance
from coordinator.operations.specs import present_guest
from noded.copies.fake_between import FakeBetween, FakeBridge
from tests.sim.settings import WEB1, create
from tests.sim.stories.backup import debian_with_data
from tests.support.cluster import SimulatedCluster
from tests.support.disks import file_disk
from tests.support.story import Story

SHOP = InstanceName("shop")
SECRET = "known to both clusters"
TRUST, SALT = Trust(SECRET), "salt"
HOST, CERTIFICATE = "198.51.100.1", "certificate of the other node"
DISK = file_disk("web1 disk 0", "/there")


class Words:
    """What is on the disks of the other cluster."""

    def read(self, _: DiskSpec) -> str:
        return "data of shop"

    def write(self, _: DiskSpec, __: str) -> None: ...

    def ending(self, _: DiskSpec) -> str | None:
        return ""


class OtherNode(FakeBetween):
    """Fills whatever is expected of it as soon as anybody looks."""

    def __init__(self, bridge: FakeBridge) -> None:
        super().__init__(
            "the other one", HOST, bridge, certificate=lambda: CERTIFICATE, contents=Words()
        )
        self._bridge = bridge

    def bring_on(self) -> None:
        for machine in list(self._bridge.machines.values()):
            for copy, disk in machine.expected_of(CERTIFICATE):
                if machine.receive(copy, self._contents.read(disk), disk.size) == "":
                    machine.hear(copy)


async def trusted(cluster: SimulatedCluster) -> None:
    """Begin with another cluster that is trusted."""
    await cluster.run(RenewCrypto(cluster_domain_secret=SECRET))
    OtherNode(cluster.wires.bridge)


async def trusted_with_web1(cluster: SimulatedCluster) -> None:
    """Begin with web1 running on alpha, with data."""
    await cluster.run(create("web1", "alpha", template=DiskTemplate.FILE))
    for spec in present_guest(cluster.config, cluster.config.instance("web1")).disks:
        cluster.machines["alpha"].written.write(spec, "data of web1")
    await trusted(cluster)


async def trusted_with_debian(cluster: SimulatedCluster) -> None:
    """Begin with web1 stopped on alpha, with data that a script can pack."""
    await debian_with_data(cluster, "alpha")
    await trusted(cluster)


def receiving(_: SimulatedCluster) -> CreateInstance:
    return coming()


def receiving_by_script(_: SimulatedCluster) -> CreateInstance:
    return coming(by_script=True, os_type="debian+stable")


def receiving_renamed(_: SimulatedCluster) -> CreateInstance:
    return coming(by_script=True, os_type="debian+stable", source_instance_name="store")


def coming(*, by_script: bool = False, **more: Any) -> CreateInstance:
    operation = read_operation({
        "OP_ID": "OP_INSTANCE_CREATE", "mode": "remote-import", "instance_name": "shop",
        "disk_template": "file", "disks": [{"size": 64}], "nics": [], "pnode": "alpha",
        "source_handshake": list(TRUST.handshake(SALT, by_script=by_script)),
        "source_instance_name": "shop",
        "source_x509_ca": TRUST.sign_certificate(CERTIFICATE, SALT), **more,
    })  # fmt: skip
    assert isinstance(operation, CreateInstance)
    return operation


def sending(cluster: SimulatedCluster) -> ExportInstance:
    return to_other(cluster, expected_of(cluster))


def sending_by_script(cluster: SimulatedCluster) -> ExportInstance:
    return to_other(cluster, expected_of(cluster), is_script=True)


def expected_of(cluster: SimulatedCluster) -> Offer:
    """Have the other node expect web1 of alpha."""
    machine = cluster.wires.bridge.machines["the other one", HOST]
    certificate = cluster.machines["alpha"].copier.certificate
    return machine.expect(
        "web1", DISK, Stranger(name=NodeName("alpha"), certificate=certificate), 3600.0
    )


def to_other(cluster: SimulatedCluster, offer: Offer, *, is_script: bool = False) -> ExportInstance:
    place = Destination(HOST, offer, is_script=is_script)
    key = name_of_key(cluster.config.node("alpha"))
    operation = read_operation({
        "OP_ID": "OP_BACKUP_EXPORT", "mode": "remote", "instance_name": "web1",
        "target_node": to_builtins([TRUST.name_place(0, place, SALT)]),
        "x509_key_name": list(TRUST.name_key(key, SALT)), "remove_instance": True,
        "destination_x509_ca": TRUST.sign_certificate(CERTIFICATE, SALT),
    })  # fmt: skip
    assert isinstance(operation, ExportInstance)
    return operation


# What one cluster does has to do with one of its nodes only.
ALONE: Mapping[str, Any] = {"nodes": 1, "successor": ""}

STORIES = {
    "prepare to send": Story(
        PrepareExport(instance_name=WEB1, mode="remote"), trusted_with_web1, **ALONE
    ),
    # What has arrived is not asked for again; of the copy no more is left than that it has ended,
    # and so of a script.
    "send to another cluster": Story(
        sending,
        trusted_with_web1,
        again=RemoveInstance(instance_name=WEB1),
        uncertain=frozenset({"copies alpha"}),
        **ALONE,
    ),
    "receive from another cluster": Story(
        receiving,
        trusted,
        again=StartInstance(instance_name=SHOP),
        uncertain=frozenset({"copies alpha"}),
        **ALONE,
    ),
    "send what a script writes": Story(
        sending_by_script,
        trusted_with_debian,
        again=RemoveInstance(instance_name=WEB1),
        uncertain=frozenset({"copies alpha", "scripts alpha"}),
        **ALONE,
    ),
    "receive what a script reads": Story(
        receiving_by_script,
        trusted,
        again=StartInstance(instance_name=SHOP),
        uncertain=frozenset({"copies alpha", "scripts alpha"}),
        **ALONE,
    ),
    "receive what gets another name": Story(
        receiving_renamed,
        trusted,
        again=StartInstance(instance_name=SHOP),
        # Where it cannot be renamed within, it is as it came.
        uncertain=frozenset({"copies alpha", "scripts alpha", "contents alpha"}),
        **ALONE,
    ),
    "share a secret with another cluster": Story(
        RenewCrypto(cluster_domain_secret=SECRET), has_secret=True, **ALONE
    ),
    "share none any more": Story(RenewCrypto(new_cluster_domain_secret=True), trusted, **ALONE),
}
