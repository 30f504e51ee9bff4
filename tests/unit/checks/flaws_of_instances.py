"""Flaws in instances: where they are, whether they run, and what they have."""

from typing import Any

from msgspec.structs import replace

from common.model.backing import FileBacking
from common.model.disk import Disk
from common.model.group import Group
from common.model.instance import AdminState
from common.model.nic import Nic
from common.model.template import DiskTemplate
from common.names import DiskId, GroupId, GroupName, InstanceId, InstanceName, MiB, NicId, NodeId
from common.noderpc.instances import GuestState
from coordinator.checks.finding import Severity
from coordinator.state.rows import Put, Update
from tests.unit.checks.flaw import Flaw, facts
from tests.unit.checks.healthy import CLUSTER, DISK, GUEST, INSTANCE, NIC, PATH, TAP, node

LOST = replace(GUEST, id=InstanceId("lost"), name=InstanceName("lost1"))


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


def _with_state(state: GuestState) -> dict[str, Any]:
    return {"guests": (replace(GUEST, state=state),)}


FLAWS_OF_INSTANCES = {
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
         Put(replace(node("beta"), group=GroupId("other")))),
        severity=Severity.WARNING,
    ),
    "an instance is on a node that is for none": Flaw(
        "EINSTANCEUNSUITABLENODE", "is on alpha, which may run no instances",
        (Put(node("alpha", vm_capable=False)),),
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
        beta=facts(memory_free=MiB(100)),
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
            Put(node("beta", offline=True, master_candidate=False)),
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
    "a TPM has ended": Flaw(
        "EINSTANCEDOWN", "its TPM on alpha has ended, and what it has sealed is out of its reach",
        alpha={"guests": (replace(GUEST, lost_tpm=True),)},
    ),
    "it is open where an instance is": Flaw(
        "EINSTANCEWRONGNODE", "may be on alpha or beta; unless a job is moving it just now",
        (Put(replace(INSTANCE, maybe_on=(NodeId("alpha"), NodeId("beta")))),),
        severity=Severity.WARNING,
    ),
}  # fmt: skip
