"""Stories of nodes and of the pool of candidates."""

from common.names import KeyId, NodeName
from common.noderpc.programs import OobCommand
from coordinator.operations.cluster.modify import ModifyCluster
from coordinator.operations.instance.remove import RemoveInstance
from coordinator.operations.node.add import AddNode
from coordinator.operations.node.fence import FenceNode
from coordinator.operations.node.maintain import MaintainNode
from coordinator.operations.node.modify import ModifyNode
from coordinator.operations.node.modify_storage import ModifyStorage
from coordinator.operations.node.power import PowerNodes
from coordinator.operations.node.powercycle import PowercycleNode
from coordinator.operations.node.query_storage import QueryStorage
from coordinator.operations.node.query_volumes import QueryVolumes
from coordinator.operations.node.remove import RemoveNode
from coordinator.operations.node.remove_leftovers import RemoveLeftovers
from coordinator.operations.node.rename import RenameNode
from coordinator.operations.node.renew_key import RenewKey
from coordinator.operations.node.repair_storage import RepairStorage
from coordinator.operations.node.restricted import RunRestricted
from coordinator.operations.node.revoking import revoke
from coordinator.operations.node.storage_units import UnitType
from tests.sim.settings import BETA, DELTA, DISTRIBUTED, GAMMA, WEB1, distribute, mirrored
from tests.support.cluster import SimulatedCluster
from tests.support.image import GROUP, ip_of
from tests.support.seeds import is_thorough
from tests.support.story import Story

ABOUT_GAMMA = frozenset({"members gamma"})


def add_delta(cluster: SimulatedCluster) -> AddNode:
    return AddNode(
        node_name=DELTA, primary_ip=ip_of("delta"), token=str(cluster.machines["delta"].token)
    )


def readd_gamma(cluster: SimulatedCluster) -> AddNode:
    return AddNode(node_name=GAMMA, token=str(cluster.machines["gamma"].token), readd=True)


async def gamma_wiped(cluster: SimulatedCluster) -> None:
    """Have gamma lose all that is on its disks, where a key was revoked before, of who is gone."""
    record = revoke(cluster.config, KeyId("0" * 64))
    await cluster.master.running.store.commit(list(record))
    await cluster.lose_power("gamma")
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True))
    await cluster.machines["gamma"].wipe()


async def gamma_drained(cluster: SimulatedCluster) -> None:
    await cluster.run(ModifyNode(node_name=GAMMA, drained=True, force=True))


async def gamma_offline(cluster: SimulatedCluster) -> None:
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))


async def gamma_offline_without_a_file(cluster: SimulatedCluster) -> None:
    """Have gamma offline, and a file on alpha that all nodes are to have."""
    distribute(cluster)
    await cluster.run(ModifyCluster(distributed_files=(DISTRIBUTED,)))
    await gamma_offline(cluster)


async def gamma_off_by_a_program(cluster: SimulatedCluster) -> None:
    """Have gamma offline, with a program that switches it."""
    program = {"oob_program": "/etc/gantry/out-of-band/switch"}
    await cluster.run(ModifyNode(node_name=GAMMA, ndparams=program))
    await cluster.run(ModifyNode(node_name=GAMMA, offline=True, force=True))
    for machine in cluster.machines.values():
        machine.programs.answers[OobCommand.HEALTH, GAMMA] = '[["disks", "OK"]]'


async def gamma_dead(cluster: SimulatedCluster) -> None:
    """Have gamma be without power, of which a program tells, and not marked offline."""
    program = {"oob_program": "/etc/gantry/out-of-band/switch"}
    await cluster.run(ModifyNode(node_name=GAMMA, ndparams=program))
    for machine in cluster.machines.values():
        machine.programs.answers[OobCommand.POWER_STATUS, GAMMA] = '{"powered": false}'
    await cluster.lose_power("gamma")


async def commands_on_gamma(cluster: SimulatedCluster) -> None:
    cluster.machines["gamma"].programs.commands["tell"] = "as it was told"


async def gamma_without_its_device(cluster: SimulatedCluster) -> None:
    cluster.machines["gamma"].physical.lose(f"/dev/{GROUP}")


async def beta_with_leftovers(cluster: SimulatedCluster) -> None:
    """Have beta be off while an instance is removed that has a copy there."""
    await cluster.run(mirrored(start=False))
    await cluster.lose_power("beta")
    await cluster.run(ModifyNode(node_name=BETA, offline=True, force=True))
    await cluster.run(RemoveInstance(instance_name=WEB1))
    await cluster.machines["beta"].boot()
    await cluster.run(ModifyNode(node_name=BETA, offline=False))


REPAIR = RepairStorage(node_name=GAMMA, storage_type=UnitType.VOLUME_GROUP, name=GROUP)

STORIES = {
    "add a candidate": Story(add_delta, strangers=1, has_secret=True, concerned="delta"),
    "add a regular node": Story(add_delta, strangers=1, candidates=3, has_secret=True),
    "have a wiped node come back": Story(
        readd_gamma, gamma_wiped, has_secret=True, concerned="gamma"
    ),
    "give a node another key": Story(
        RenewKey(node_name=GAMMA), again=RenewKey(node_name=GAMMA),
        uncertain=frozenset({"config cluster 00000000-0000-4000-8000-0000000000c0"}),
    ),  # done again, it revokes one key more
    "drain": Story(
        ModifyNode(node_name=GAMMA, drained=True), concerned="gamma", uncertain=ABOUT_GAMMA
    ),
    "drain no more": Story(
        ModifyNode(node_name=GAMMA, drained=False), gamma_drained, concerned="gamma",
        uncertain=ABOUT_GAMMA,
    ),
    "mark offline": Story(ModifyNode(node_name=GAMMA, offline=True), concerned="gamma"),
    "mark online": Story(
        ModifyNode(node_name=GAMMA, offline=False), gamma_offline_without_a_file, concerned="gamma",
        uncertain=ABOUT_GAMMA,
    ),
    "demote": Story(
        ModifyNode(node_name=GAMMA, master_candidate=False), concerned="gamma",
        uncertain=ABOUT_GAMMA,
    ),
    "promote": Story(
        ModifyNode(node_name=GAMMA, master_candidate=True), candidates=2, concerned="gamma"
    ),
    "demote and promote another": Story(
        ModifyNode(node_name=BETA, master_candidate=False, auto_promote=True),
        candidates=2, successor="", concerned="beta", uncertain=frozenset({"members beta"}),
    ),
    "list volumes": Story(QueryVolumes(output_fields=("node", "name"))),
    "list volume groups": Story(
        QueryStorage(output_fields=("node", "name"), storage_type=UnitType.VOLUME_GROUP)
    ),
    "take no space of a device any more": Story(
        ModifyStorage(
            node_name=GAMMA, storage_type=UnitType.PHYSICAL_VOLUME, name=f"/dev/{GROUP}",
            changes={"allocatable": False},
        )
    ),
    "do without a missing device": Story(
        REPAIR, gamma_without_its_device, uncertain=frozenset({"devices gamma"})
    ),
    "delete what is left over": Story(
        RemoveLeftovers(node_name=BETA), beta_with_leftovers, successor="",
        uncertain=frozenset({"disks beta", "attached beta"}), again=RemoveLeftovers(node_name=BETA),
    ),
    "change parameters": Story(ModifyNode(node_name=GAMMA, ndparams={"spindle_count": 4})),
    "remove a node": Story(
        RemoveNode(node_name=GAMMA), concerned="gamma", uncertain=ABOUT_GAMMA
    ),
    "remove a candidate for whom there is another": Story(
        RemoveNode(node_name=BETA), candidates=2, successor="", concerned="beta",
        uncertain=frozenset({"members beta"}),
    ),
    "rename a node": Story(
        RenameNode(node_name=GAMMA, new_name=NodeName("georg")), candidates=2, concerned="gamma",
        uncertain=ABOUT_GAMMA,
    ),
    "have a node empty": Story(
        MaintainNode(node_name=GAMMA), concerned="gamma", uncertain=ABOUT_GAMMA,
    ),
    "switch a node off": Story(
        PowerNodes(command=OobCommand.POWER_OFF, node_names=(GAMMA,)), gamma_off_by_a_program,
    ),
    "switch a dead node off": Story(FenceNode(node_name=GAMMA), gamma_dead, candidates=2),
    "ask how nodes are": Story(
        PowerNodes(command=OobCommand.HEALTH), gamma_off_by_a_program,
    ),
    "run a restricted command": Story(
        RunRestricted(command="tell", nodes=(GAMMA,)), commands_on_gamma,
    ),
    "powercycle": Story(
        PowercycleNode(node_name=GAMMA), rest_s=60.0, concerned="gamma",
        uncertain=frozenset({"boots gamma"}),
    ),
}  # fmt: skip

# What takes several changes of the pool is told where time does not matter.
_IN_DETAIL = {
    "rename a candidate": Story(
        RenameNode(node_name=BETA, new_name=NodeName("bernd")), successor="gamma",
        concerned="beta", uncertain=frozenset({"members beta"}),
    ),
}  # fmt: skip

if is_thorough():
    STORIES |= _IN_DETAIL
