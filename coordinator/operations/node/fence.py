"""Switch off a node that does not answer, and mark it offline once it is known to be off.

That a node is marked offline is somebody's word that nothing runs there, and its instances are
started elsewhere on it. Here it is not a person's: the power is off, and a program has said so. A
master that is itself cut off from the others must not order that, so most nodes have to obey it.
"""

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest, NodeFailure, Unreachable
from common.messages import Order
from common.model.node import Node
from common.model.parameters import NodeParameters, settled
from common.names import NodeName
from common.noderpc.mastership import Ballot, Mastership
from common.noderpc.programs import OobCommand, Programs
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import NodeArgument
from coordinator.operations.follow_up import FollowUp, FollowUps
from coordinator.operations.locking import wanted
from coordinator.operations.node.modify import ModifyNode, ModifyPlan
from coordinator.operations.node.pool import check_master_stays, successors
from coordinator.operations.node.power import program_of, read_answer
from coordinator.operations.step import Step, act
from coordinator.state.config import Config

PROGRAM_S = 60  # that the program may take for an answer
LOOKS, PAUSE_S = 10, 3.0  # for the power to be off


class FencePlan(Order, kw_only=True):
    """``successors`` are to be candidates in its place."""

    program: str
    modify: ModifyPlan
    successors: tuple[NodeName, ...] = ()


@operation("OP_NODE_FENCE")
class FenceNode(Operation[None, FencePlan], kw_only=True):
    """Switch off a node that does not answer, and mark it offline when it is known to be off.

    It needs a program that switches it (node parameter oob_program), and that most nodes answer.
    """

    node_name: NodeArgument

    def is_for_root(self) -> bool:
        return True  # as switching nodes is, and it makes other nodes candidates

    def locks(self, config: Config, _: None) -> Wanted:
        return wanted(nodes_exclusive=[config.node(self.node_name).uuid])

    async def prepare(self, cluster: Cluster, _: None) -> FencePlan:
        config = cluster.config
        node = config.node(self.node_name)
        if node.offline:
            raise Conflict(f"Node {node.name} is marked offline already.", node=node.name)
        check_master_stays(config, node, None)
        program = program_of(config, node)
        if not program:
            raise InvalidRequest(
                f"Nothing switches the power of {node.name}, so nobody can know that it is off: "
                "set its node parameter oob_program, or, if you know that it is dead, mark it "
                f"offline yourself with “gnt-node modify --offline=yes --force {node.name}”.",
                node=node.name,
            )
        await _check_is_cut_off(cluster, node)
        marking = ModifyNode(node_name=node.name, offline=True, force=True)
        modify = await marking.prepare(cluster, None)
        first, *others = modify.after
        return FencePlan(
            program=program,
            modify=replace(modify, after=(replace(first, powered=False), *others)),
            successors=tuple(each.name for each in successors(config, node, cluster.now())),
        )

    def recipe(self, cluster: Cluster, plan: FencePlan) -> Iterator[Step]:
        node = plan.modify.after[0].name
        yield act(f"switch {node} off", lambda: _switch_off(cluster, plan, node))
        yield from ModifyNode(node_name=node).recipe(cluster, plan.modify)

    def jobs(self, plan: FencePlan) -> FollowUps:
        promotions = (ModifyNode(node_name=n, master_candidate=True) for n in plan.successors)
        return tuple((FollowUp(input=each.to_input()),) for each in promotions)

    def result(self, plan: FencePlan) -> dict[str, Any]:  # noqa: ARG002
        return {"jobs": []}


async def _check_is_cut_off(cluster: Cluster, node: Node) -> None:
    """See that the node is silent, and that it is the node that is cut off and not this master.

    Where only its daemon is silent, its guests run and can be reached.

    Raises:
        Conflict: it answers, its machine does, or most nodes do not obey this master.
    """
    config = cluster.config
    asked = [each for each in config.sorted_nodes() if not each.offline]
    answers = await cluster.each(
        {each.uuid: cluster.call(Mastership, each).vote() for each in asked}
    )
    silence = answers[node.uuid]
    if not isinstance(silence, Unreachable):
        raise Conflict(
            f"Node {node.name} answers, so it is not switched off; “gnt-node maintain "
            f"{node.name}” has it empty, and “gnt-node powercycle {node.name}” reboots it.",
            node=node.name,
        )
    if await cluster.is_alive(_addresses(config, node)):
        raise Conflict(
            f"The machine of {node.name} runs and can be reached, and so may its guests; its noded "
            f"does not answer, so look there: “systemctl status gantry-noded”. {silence.message}",
            node=node.name,
        )
    master = config.master().name
    heard = [each for each in answers.values() if isinstance(each, Ballot)]
    obedient = sum(ballot.master == master for ballot in heard)
    if obedient <= len(config.nodes) // 2:
        raise Conflict(
            f"Only {obedient} of {len(config.nodes)} nodes answer {master}, so it may be {master} "
            f"that is cut off, and not {node.name}: nothing is switched off.",
            node=node.name,
        )


def _addresses(config: Config, node: Node) -> set[tuple[str, int]]:
    """Return where a kernel would answer; also where a daemon that hangs has its queue full."""
    layers = (config.cluster.ndparams, config.groups[node.group].ndparams, node.ndparams)
    ports = (node.port, settled(NodeParameters, *layers).ssh_port)
    return {(ip, port) for ip in (node.primary_ip, node.secondary_ip) if ip for port in ports}


async def _switch_off(cluster: Cluster, plan: FencePlan, node: NodeName) -> None:
    """Take the power from a node, and return when it is known to have none.

    It may be back since this was planned, if another coordinator goes on with it.

    Raises:
        Conflict: it answers, its machine does, or most nodes do not obey this master.
        NodeFailure: a program failed, or says after a while that it still has power.
    """
    await _check_is_cut_off(cluster, cluster.config.node(node))
    await _run(cluster, plan, OobCommand.POWER_OFF, node)
    for look in range(LOOKS):
        if look:
            await cluster.sleep(PAUSE_S)
        said = await _run(cluster, plan, OobCommand.POWER_STATUS, node)
        if not read_answer(OobCommand.POWER_STATUS, node, said)["powered"]:
            return
    raise NodeFailure(
        f"{plan.program} says that {node} still has power after it was switched off, so its "
        "guests may run on, and it is not marked offline.",
        node=node,
    )


async def _run(cluster: Cluster, plan: FencePlan, command: OobCommand, node: NodeName) -> str:
    # The master of now: whoever planned this may have lost its own power meanwhile.
    return await cluster.call(Programs, cluster.config.master()).out_of_band(
        program=plan.program, command=command, node=node, timeout_s=PROGRAM_S
    )
