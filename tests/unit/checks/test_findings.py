"""Each thing that ``gnt-cluster verify`` can find, in a cluster that lacks nothing else."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from common.errors import GntError, NodeFailure, Unreachable
from common.model.cluster import Cluster
from common.model.disk import Disk, DrbdBacking, ExtBacking, FileBacking, LvmBacking
from common.model.group import Group
from common.model.instance import AdminState, Instance
from common.model.nic import Nic
from common.model.node import Node
from common.model.pool import Pool
from common.model.pool_kind import PoolKind
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
from common.noderpc.disks import VolumeListing
from common.noderpc.facts import NodeFacts, StorageReport
from common.noderpc.files import FileReport
from common.noderpc.instances import GuestReport, GuestState
from common.noderpc.mastership import Ballot
from common.noderpc.mirrors import MirrorDevice
from common.noderpc.network import TapReport
from common.noderpc.operating_systems import DefinitionReport
from common.noderpc.providers import ProviderReport
from common.noderpc.roster import Roster
from coordinator.checks.every import OF_CONFIGURATION, OF_GROUP
from coordinator.checks.finding import Finding, NodeReport, Seen, Severity
from coordinator.checks.mirrors import check_devices
from coordinator.state.rows import Delete, Put, Update
from coordinator.state.state import State
from tests.support.disks import directory

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


def _node(name: str, **fields: Any) -> Node:
    return Node(
        uuid=NodeId(name), name=NodeName(name), group=GroupId("group"),
        **{
            "primary_ip": "192.0.2.1", "master_candidate": True, "key": KeyId(f"of {name}"),
            **fields,
        },
    )  # fmt: skip


def _report(name: str, **fields: Any) -> NodeReport:
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
        roster=Roster(), links={"br0": True}, asked_at=NOW, mirrors={}, devices=(),
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
        _node("alpha"), _node("beta"), _node("gamma"), _node("delta"), INSTANCE,
        Disk(uuid=DISK, size=MiB(64), backing=FileBacking(path=PATH, shared=True)),
        Nic(uuid=NIC, mac="aa:00:00:00:00:01"),
    )
)  # fmt: skip


DISTRIBUTING = (Put(replace(CLUSTER, distributed_files=("/etc/hosts",))),)
MIRRORING = (Put(replace(CLUSTER, enabled_disk_templates=("sharedfile", "drbd"))),)
WITH_ADDRESS = (Put(replace(CLUSTER, master_ip="192.0.2.9", master_netdev="eth0")),)

# The same instance, with a disk that is a volume, too.
ON_VOLUME = (
    Put(replace(INSTANCE, disks=(DISK, DiskId("volume")))),
    Put(Disk(
        uuid=DiskId("volume"), size=MiB(64), nodes=(NodeId("alpha"),),
        backing=LvmBacking(group="vg", name="volume.disk"),
    )),
)  # fmt: skip
# The same instance, with a disk that a provider keeps, too.
ON_SHELF = (
    Put(replace(INSTANCE, disks=(DISK, DiskId("shelved")))),
    Put(Disk(
        uuid=DiskId("shelved"), size=MiB(64), backing=ExtBacking(provider="shelf", name="v"),
    )),
)  # fmt: skip
VOLUME = VolumeListing(
    group="vg", name="volume.disk", size=MiB(64), disk=DiskId("volume"), instance=WEB1
)
LEFT = VolumeListing(
    group="vg", name="old.disk", size=MiB(64), disk=DiskId("old"), instance=InstanceId("web9")
)
POOL = Pool(kind=PoolKind.VOLUME_GROUP, name="vg")


def _with_volumes(
    *volumes: VolumeListing, problem: str = "", usable: bool = True
) -> dict[str, Any]:
    """Return what a node says that has these, its volume group being in some state."""
    space = StorageReport(pool=POOL, total=MiB(1024), free=MiB(512), usable=usable, problem=problem)
    facts = replace(_report("alpha").facts, storage=(space,))
    return {"facts": facts, "volumes": volumes}


MIRROR = DrbdBacking(
    data=LvmBacking(group="gantry", name="mirror.data"),
    meta=LvmBacking(group="gantry", name="mirror.meta"),
    port=11000, minors={NodeId("beta"): 3}, secret="s",
)  # fmt: skip


def _mirrored(*seconds: str, **fields: Any) -> tuple[Update, ...]:
    """Return web1 with a further disk on alpha and each of these nodes, which have it."""
    disks = [
        Disk(
            uuid=DiskId(f"with {name}"), size=MiB(64), nodes=(NodeId("alpha"), NodeId(name)),
            backing=FileBacking(path=PATH, shared=True),
        )
        for name in seconds
    ]  # fmt: skip
    uuids = (DISK, *(disk.uuid for disk in disks))
    return (*map(Put, disks), Put(replace(INSTANCE, disks=uuids, **fields)))


class Flaw(NamedTuple):
    """What is different from the healthy cluster, and what is to be found for that."""

    code: str
    says: str
    updates: tuple[Update, ...] = ()
    alpha: dict[str, Any] | GntError = {}
    beta: dict[str, Any] | GntError = {}
    severity: Severity = Severity.ERROR
    outside: dict[InstanceName, str] = {}


def _facts(**fields: Any) -> dict[str, Any]:
    return {"facts": replace(_report("beta").facts, **fields)}


def _ballot(**fields: Any) -> dict[str, Any]:
    return {"ballot": replace(_report("beta").ballot, **fields)}


def _with_state(state: GuestState) -> dict[str, Any]:
    return {"guests": (replace(GUEST, state=state),)}


FULL = NodeFailure("No space left on device.")
EVERYBODY = {NodeName(name): KeyId(f"of {name}") for name in ("alpha", "beta", "gamma", "delta")}
LOST = replace(GUEST, id=InstanceId("lost"), name=InstanceName("lost1"))
FLAWS = {
    "a node is offline": Flaw(
        "ECLUSTERCFG", "1 offline node(s): beta",
        (Put(_node("beta", offline=True, master_candidate=False)),), severity=Severity.NOTICE,
    ),
    "a node is drained": Flaw(
        "ECLUSTERCFG", "1 drained node(s): beta",
        (Put(_node("beta", drained=True, master_candidate=False)),), beta=_ballot(stamp=None),
        severity=Severity.NOTICE,
    ),
    "the pool is too small": Flaw(
        "ECLUSTERCFG", "3 master candidates, 4 are possible",
        (Put(_node("beta", master_candidate=False)),), beta=_ballot(stamp=None),
        severity=Severity.WARNING,
    ),
    "a former candidate still has the state": Flaw(
        "ECLUSTERCFG", "has an old copy of the state",
        (Put(_node("beta", master_candidate=False, master_capable=False)),),
        severity=Severity.WARNING,
    ),
    "two nodes hold the state": Flaw(
        "ECLUSTERCFG", "only alpha and beta hold the state",
        (Delete(_node("gamma")), Delete(_node("delta"))), severity=Severity.WARNING,
    ),
    "a node lacks an operating system": Flaw(
        "ENODEOS", "lacks the operating system debian, which alpha has", beta={"systems": ()},
        severity=Severity.WARNING,
    ),
    "a node cannot install an operating system": Flaw(
        "ENODEOS", "cannot install the operating system debian: It has no script “create”.",
        beta={"systems": (replace(DEBIAN, problem="It has no script “create”."),)},
        severity=Severity.WARNING,
    ),
    "a node has another definition of an operating system": Flaw(
        "ENODEOS", "has other versions of the interface and variants of the operating system",
        beta={"systems": (replace(DEBIAN, variants=("sid",), api_versions=(15,)),)},
        severity=Severity.WARNING,
    ),
    "an instance's node is unknown": Flaw(
        "ECLUSTERDANGLINGINST", "its node is unknown",
        (Put(replace(INSTANCE, primary_node=NodeId("gone"))),),
        alpha={"guests": (), "taps": ()},
    ),
    "an instance's disk is unknown": Flaw(
        "EINSTANCEMISSINGCFGPARAMETER", "its device gone is unknown",
        (Put(replace(INSTANCE, nics=(NicId("gone"), NIC))),),
    ),
    "a device is nobody's": Flaw(
        "ECLUSTERCFG", "the device stray belongs to no instance",
        (Put(Nic(uuid=NicId("stray"), mac="aa:00:00:00:00:02")),),
    ),
    "a node's group is unknown": Flaw(
        "ECLUSTERDANGLINGNODES", "its group is unknown",
        (Put(replace(_node("beta"), group=GroupId("gone"))),),
    ),
    "a node does not answer": Flaw("ENODERPC", "no answer", beta=Unreachable("no answer")),
    "a node is of another version": Flaw(
        "ENODEVERSION", "runs version 0.9, the master 1.0", beta=_facts(version="0.9"),
        severity=Severity.WARNING,
    ),
    "a clock is ahead": Flaw("ENODETIME", "600 s ahead of", beta=_facts(clock=NOW + 600)),
    "a clock is behind": Flaw("ENODETIME", "200 s behind", beta=_facts(clock=NOW - 200)),
    "a certificate ends soon": Flaw(
        "ECLUSTERCERT", "ends on 2027-02-09", beta=_facts(certificate_end=NOW + 25 * 86400),
        severity=Severity.WARNING,
    ),
    "a certificate ends within days": Flaw(
        "ECLUSTERCERT", "--new-node-certificates", beta=_facts(certificate_end=NOW + 6 * 86400)
    ),
    "a certificate has ended": Flaw(
        "ECLUSTERCERT", "ends on 2027-01-15", beta=_facts(certificate_end=NOW - 1)
    ),
    "a node obeys another master": Flaw(
        "ECLUSTERCFG", "obeys beta (epoch 3), not alpha", beta=_ballot(master=NodeName("beta"))
    ),
    "a node obeys nobody": Flaw(
        "ECLUSTERCFG", "obeys nobody", beta=_ballot(master=None, epoch=Epoch(0))
    ),
    "a node is of an older epoch": Flaw("ECLUSTERCFG", "epoch 2", beta=_ballot(epoch=Epoch(2))),
    "a candidate has no state": Flaw("ECLUSTERCFG", "has no copy", beta=_ballot(stamp=None)),
    "a candidate is behind": Flaw(
        "ECLUSTERCFG", "20 commits behind: No space left on device.",
        beta=_ballot(stamp=replace(STAMP, serial=Serial(50)))
    ),
    "a node takes orders of a former candidate": Flaw(
        "ECLUSTERCFG", "its list of who may give orders is wrong about omega",
        beta={"roster": Roster(candidates=EVERYBODY | {NodeName("omega"): KeyId("")})},
    ),
    "a node takes orders of a former key": Flaw(
        "ECLUSTERCFG", "who may give orders is wrong about beta",
        beta={"roster": Roster(candidates=EVERYBODY | {NodeName("beta"): KeyId("old")})},
    ),
    "a node does not know of a removed one": Flaw(
        "ENODESETUP", "does not know that 1 certificate(s) are revoked",
        (Put(replace(CLUSTER, revoked_keys=(KeyId("d" * 64),))),),
        beta={"roster": Roster(candidates=EVERYBODY)},
    ),
    "a policy does not allow an instance": Flaw(
        "EINSTANCEPOLICY", "it is too small", outside={InstanceName("web1"): "it is too small"},
        severity=Severity.WARNING,
    ),
    "mirrors are on several nodes": Flaw(
        "EINSTANCELAYOUT", "mirrored on several nodes: beta, gamma",
        _mirrored("beta", "gamma"),
        severity=Severity.WARNING,
    ),
    "mirrors are in several groups": Flaw(
        "EINSTANCESPLITGROUPS", "its nodes are in several groups: alpha, beta",
        (*_mirrored("beta"), Put(Group(uuid=GroupId("other"), name=GroupName("other"))),
         Put(replace(_node("beta"), group=GroupId("other")))),
        severity=Severity.WARNING,
    ),
    "an instance is on a node that is for none": Flaw(
        "EINSTANCEUNSUITABLENODE", "is on alpha, which may run no instances",
        (Put(_node("alpha", vm_capable=False)),),
    ),
    "instances are to be apart": Flaw(
        "EEXTAGS", "several instances with the tag service:dns: web1, web2",
        (Put(replace(CLUSTER, tags=("htools:iextags:service",))),
         Put(replace(INSTANCE, tags=("service:dns",))),
         Put(replace(INSTANCE, uuid=InstanceId("web2"), name=InstanceName("web2"), disks=(),
                     nics=(), admin_state=AdminState.DOWN, tags=("service:dns",)))),
        severity=Severity.WARNING,
    ),
    "a failure would find too little memory": Flaw(
        "ENODEN1", "100 MiB of memory free, and 512 MiB would be needed for the instances of alpha",
        _mirrored("beta", disk_template=DiskTemplate.DRBD, beparams={"maxmem": 512, "minmem": 512}),
        beta=_facts(memory_free=MiB(100)),
    ),
    "flags contradict one another": Flaw(
        "ECLUSTERCFG", "is a master candidate, and drained",
        (Put(_node("beta", drained=True)),),
    ),
    "a distributed file is another one": Flaw(
        "ECLUSTERFILECHECK", "/etc/hosts is another one than on other nodes", DISTRIBUTING,
        beta={"files": {"/etc/hosts": "other"}},
    ),
    "a distributed file is missing": Flaw(
        "ECLUSTERFILECHECK", "/etc/hosts is missing, or not allowed", DISTRIBUTING,
        beta={"files": {"/etc/hosts": ""}},
    ),
    "the master lacks its address": Flaw(
        "ENODENET", "is the master, and does not have the master's address 192.0.2.9", WITH_ADDRESS
    ),
    "another node has the master's address": Flaw(
        "ENODENET", "has the address 192.0.2.9, which alpha alone is to have now", WITH_ADDRESS,
        alpha={"master_device": "eth0"}, beta={"master_device": "eth0"},
    ),
    "the master has an address that is not active": Flaw(
        "ENODENET", "has the address 192.0.2.9, which nobody is to have now",
        (Put(replace(CLUSTER, master_ip="192.0.2.9", master_netdev="eth0",
                     master_ip_active=False)),),
        alpha={"master_device": "eth0"},
    ),
    "the master's address is a node's own": Flaw(
        "ECLUSTERCFG", "192.0.2.1 is the own address of beta",
        (Put(replace(CLUSTER, master_ip="192.0.2.1", master_netdev="eth0")),
         *(Put(_node(name, primary_ip=f"192.0.2.{number}")) for number, name in
           enumerate(("beta", "alpha", "gamma", "delta"), start=1))),
        alpha={"master_device": "eth0"},
    ),
    "an ssconf file is outdated": Flaw(
        "ENODEFILECHECK", "missing ssconf files: master_node",
        beta={"ssconf": {"master_node": FileReport(digest="old")}},
    ),
    "an ssconf file is missing": Flaw(
        "ENODEFILECHECK", "missing ssconf files: master_node", beta={"ssconf": {}}
    ),
    "a hypervisor does not work": Flaw(
        "ENODEHV", "the hypervisor kvm does not work here", beta=_facts(hypervisors={"kvm": ""})
    ),
    "a directory is not usable": Flaw(
        "ENODESHAREDFILESTORAGEPATHUNUSABLE", "/srv/shared is not usable: not mounted",
        beta=_facts(storage=(
            StorageReport(pool=directory("/srv/shared"), total=MiB(0), free=MiB(0), usable=False,
                          problem="not mounted"),
        )),
    ),
    "a node cannot mirror disks": Flaw(
        "ENODEDRBD", "cannot mirror disks: no module", MIRRORING,
        beta=_facts(unmirrored="no module"),
    ),
    "the module of a node runs a program": Flaw(
        "ENODEDRBDHELPER", "cannot mirror disks: it runs drbdadm", MIRRORING,
        beta=_facts(unmirrored="it runs drbdadm", drbd_helper="/sbin/drbdadm"),
    ),
    "the module of a node is of another version": Flaw(
        "ENODEDRBDVERSION", "has DRBD 8.4.10, most nodes of its group have 8.4.11", MIRRORING,
        beta=_facts(drbd_version="8.4.10"), severity=Severity.WARNING,
    ),
    "the module of a node is of another kind": Flaw(
        "ENODEDRBDVERSION", "most nodes of its group have 8.4.11; what is mirrored between both "
        "goes on, and no new disk will be", MIRRORING,
        beta=_facts(drbd_version="9.2.16"), severity=Severity.WARNING,
    ),
    "a provider cannot be used": Flaw(
        "ENODEUSERSCRIPTS", "cannot use disks that the provider shelf keeps: it has no script",
        ON_SHELF,
        beta={"providers": (replace(SHELF, problem="it has no script “grow”"),)},
    ),
    "disks are kept among the system's files": Flaw(
        "ENODEFILESTORAGEPATHS", "file_storage_dir is /usr/lib/vm, and /usr/lib is the system's",
        (Put(replace(CLUSTER, file_storage_dir="/usr/lib/vm")),),
    ),
    "a provider is missing": Flaw(
        "ENODEUSERSCRIPTS", "provider shelf keeps: This node has no provider “shelf”",
        ON_SHELF, beta={"providers": ()},
    ),
    "a key is not known yet": Flaw(
        "ECLUSTERCLIENTCERT", "key of its certificate is not known",
        (Put(_node("beta", key=KeyId(""))),), severity=Severity.WARNING,
    ),
    "a node was given half of another key": Flaw(
        "ECLUSTERCLIENTCERT", "both count until “gnt-cluster renew-crypto --new-node-keys",
        (Put(_node("gamma", next_key=KeyId("f" * 64))),), severity=Severity.WARNING,
    ),
    "a node does not know another one's other key": Flaw(
        "ECLUSTERCFG", "who may give orders is wrong about beta",
        alpha={"roster": Roster(candidates=EVERYBODY, following={NodeName("beta"): KeyId("f")})},
    ),
    "a node shows a certificate of another cluster": Flaw(
        "ECLUSTERCLIENTCERT", "shows no certificate of this cluster",
        beta=Unreachable("Node beta shows no certificate of this cluster.", stranger=True),
    ),
    "a device is left over": Flaw(
        "ENODEDRBD", "/dev/drbd3 (gantry-gone) belongs to no disk that is here",
        beta={"devices": (MirrorDevice(resource="gantry-gone", minor=3, disk=DiskId("gone")),)},
    ),
    "guests can pretend to be others": Flaw(
        "ENODENET", "addresses of others: no nft", beta=_facts(unguarded="no nft"),
        severity=Severity.NOTICE,
    ),
    "a bridge is missing": Flaw("ENODENET", "no bridge br0", beta={"links": {"br0": False}}),
    "memory is not locked": Flaw(
        "ENODESETUP", "memory is not locked", beta=_facts(memory_locked=False),
        severity=Severity.NOTICE,
    ),
    "an instance runs twice": Flaw(
        "EINSTANCEWRONGNODE", "runs on several nodes at once: alpha, beta",
        beta={"guests": (GUEST,), "taps": (TAP,)},
    ),
    "an instance runs elsewhere": Flaw(
        "EINSTANCEWRONGNODE", "runs on beta instead of alpha",
        alpha={"guests": (), "taps": ()}, beta={"guests": (GUEST,), "taps": (TAP,)},
    ),
    "an instance's node is offline": Flaw(
        "EINSTANCEBADNODE", "its node beta is marked offline",
        (
            Put(replace(INSTANCE, primary_node=NodeId("beta"))),
            Put(_node("beta", offline=True, master_candidate=False)),
        ),
        alpha={"guests": (), "taps": ()},
    ),
    "an instance is down": Flaw(
        "EINSTANCEDOWN", "should run on alpha and does not", alpha={"guests": (), "taps": ()}
    ),
    "an instance has stopped": Flaw(
        "EINSTANCEDOWN", "should run on alpha", alpha=_with_state(GuestState.STOPPED)
    ),
    "an instance is up and should not": Flaw(
        "EINSTANCEDOWN", "although it is marked down",
        (Put(replace(INSTANCE, admin_state=AdminState.DOWN)),),
    ),
    "a guest is nobody's": Flaw(
        "ENODEORPHANINSTANCE", "the guest lost1 (running) is not in the configuration",
        beta={"guests": (LOST,)},
    ),
    "a shell is left": Flaw(
        "ENODEORPHANINSTANCE", "web1 is left here (migrated: what its memory has left); “gnt",
        beta=_with_state(GuestState.MIGRATED),
    ),
    "a guest does not answer": Flaw(
        "EINSTANCEDOWN", "its process on alpha has not answered for 7 s; its state is unknown",
        alpha={"guests": (replace(GUEST, state=GuestState.UNKNOWN, silent_s=7.0),)},
    ),
    "a write found no room": Flaw(
        "EINSTANCEDOWN", "stands still on alpha, as what it wrote found no room; make some where",
        alpha={"guests": (replace(GUEST, state=GuestState.PAUSED, lacks_space=True),)},
    ),
    "it is open where an instance is": Flaw(
        "EINSTANCEWRONGNODE", "may be on alpha or beta; unless a job is moving it just now",
        (Put(replace(INSTANCE, maybe_on=(NodeId("alpha"), NodeId("beta")))),),
        severity=Severity.WARNING,
    ),
    "a tap is left": Flaw(
        "ENODENET", "the tap gntnic is left from a guest that is gone", beta={"taps": (TAP,)}
    ),
    "a program that switches nodes is not there": Flaw(
        "ENODEOOBPATH", "Cannot run /etc/gantry/out-of-band/ipmi",
        beta={"programs": {"/a": "", "/b": "Cannot run /etc/gantry/out-of-band/ipmi: not there."}},
    ),
    "a disk is missing": Flaw(
        "EINSTANCEMISSINGDISK", f"disk 0 ({PATH}) is missing on alpha", alpha={"disk_files": ()}
    ),
    "a volume is missing": Flaw(
        "EINSTANCEMISSINGDISK", "disk 1 (vg/volume.disk) is missing on alpha", ON_VOLUME,
        alpha=_with_volumes(),
    ),
    "a volume is another disk's": Flaw(
        "EINSTANCEFAULTYDISK", "disk 1 (vg/volume.disk) on alpha cannot be used: it is not marked",
        ON_VOLUME, alpha=_with_volumes(replace(VOLUME, disk=None)),
    ),
    "a volume lacks a device": Flaw(
        "EINSTANCEFAULTYDISK", "cannot be used: it lacks a physical volume",
        ON_VOLUME,
        alpha=_with_volumes(replace(VOLUME, problem="it lacks a physical volume")),
    ),
    "a volume is too small": Flaw(
        "EINSTANCEFAULTYDISK", "cannot be used: it has 60 MiB instead of 64", ON_VOLUME,
        alpha=_with_volumes(replace(VOLUME, size=MiB(60))),
    ),
    "a volume is left": Flaw(
        "ENODEORPHANLV", "the volume vg/old.disk is left over of the disk old of the instance web9",
        ON_VOLUME, alpha=_with_volumes(VOLUME, LEFT),
    ),
    "a volume is on another node, too": Flaw(
        "ENODEORPHANLV", "the volume vg/volume.disk is of the disk volume of the instance web1, "
        "which is not kept there; “gnt-node remove-leftovers beta” deletes it",
        ON_VOLUME, alpha=_with_volumes(VOLUME), beta={"volumes": (VOLUME,)},
    ),
    "a volume group is broken": Flaw(
        "ENODELVM", "the volume group vg is not usable: It is broken.", ON_VOLUME,
        alpha=_with_volumes(VOLUME, problem="It is broken.", usable=False),

    ),
    "a thin pool is nearly full": Flaw(
        "ENODELVM", "It is nearly full.", ON_VOLUME,
        alpha=_with_volumes(VOLUME, problem="It is nearly full."),
        severity=Severity.WARNING,
    ),
    "a file is nobody's": Flaw(
        "ENODEORPHANLV", "the file /srv/shared/x.raw belongs to no instance",
        alpha={"disk_files": (PATH, "/srv/shared/x.raw")},
        beta={"disk_files": (PATH, "/srv/shared/x.raw")},
    ),
}  # fmt: skip


def _findings(flaw: Flaw) -> list[Finding]:
    state = HEALTHY.apply(flaw.updates)
    roster = Roster(
        candidates={node.name: node.key for node in state.config.candidates()},
        following=state.config.obeyed_too(),
        revoked=state.config.cluster.revoked_keys,
    )
    given = {"alpha": flaw.alpha, "beta": flaw.beta, "gamma": {}, "delta": {}}
    nodes = {
        node.uuid: change
        if isinstance(change, GntError)
        else _report(node.name, **{"roster": roster, **change})
        for node in state.config.sorted_nodes()
        if not node.offline and (change := given.get(node.name)) is not None
    }
    seen = Seen(
        state.config,
        nodes,
        STAMP,
        SSCONF,
        VERSION,
        troubles={NodeName("beta"): FULL},
        outside_policy=flaw.outside,
    )
    every: list[Callable[[Seen], Any]] = [
        check for checks in (OF_CONFIGURATION | OF_GROUP).values() for check in checks
    ]
    return [finding for check in every for finding in check(seen)]


def test_foreign_device_in_the_place_of_a_disks_is_named() -> None:
    disk = Disk(uuid=DiskId("mirror"), size=MiB(64), nodes=(NodeId("beta"),), backing=MIRROR)
    foreign = MirrorDevice(resource="precious", minor=3, disk=None)
    other = MirrorDevice(resource="precious2", minor=4, disk=None)
    nodes = {NodeId("beta"): _report("beta", devices=(foreign, other))}
    seen = Seen(HEALTHY.apply([Put(disk)]).config, nodes, STAMP, SSCONF, VERSION)
    (found,) = check_devices(seen)
    assert (found.code, found.name) == ("ENODEDRBD", "beta")
    assert "that of precious, which is none of ours; the disk mirror has" in found.message


def test_nothing_is_found_in_a_healthy_cluster() -> None:
    assert _findings(Flaw("", "")) == []


@pytest.mark.parametrize("name", FLAWS)
def test_it_is_found_and_nothing_else(name: str) -> None:
    flaw = FLAWS[name]
    found = _findings(flaw)
    (finding,) = [f for f in found if f.severity is not Severity.NOTICE] or found
    assert finding.code == flaw.code
    assert flaw.says in finding.message
    assert finding.severity is flaw.severity


def test_a_file_that_all_nodes_share_is_named_once() -> None:
    assert len(_findings(FLAWS["a file is nobody's"])) == 1


def test_a_finding_is_a_line_for_an_operator() -> None:
    (finding,) = _findings(FLAWS["an instance is down"])
    assert str(finding) == "ERROR: instance web1: should run on alpha and does not"


def test_devices_of_a_removed_instance_are_named() -> None:
    found = _findings(Flaw("", "", (Delete(INSTANCE),), alpha={"guests": (), "taps": ()}))
    assert {f.message for f in found} == {
        "the device disk belongs to no instance", "the device nic belongs to no instance",
    }  # fmt: skip
