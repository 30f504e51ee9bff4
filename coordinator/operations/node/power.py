"""Switch nodes on and off, and ask how they are, past their operating systems."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import Meta
from msgspec.structs import replace

from common.errors import Conflict, GntError, InvalidRequest, NodeFailure
from common.messages import Order
from common.model.node import Node, NodeRef
from common.model.parameters import NodeParameters, settled
from common.names import NodeName
from common.noderpc.programs import LONGEST_S, OobCommand, Programs
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.locking import wanted
from coordinator.operations.parameter import hidden
from coordinator.operations.step import Step, act
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State

NORMAL, NO_DATA, UNAVAILABLE = 0, 2, 3  # how Ganeti marks what it tells
LOOKS = (OobCommand.HEALTH, OobCommand.POWER_STATUS)
STATES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_SWITCHES = {OobCommand.POWER_ON: True, OobCommand.POWER_OFF: False}

Cell = tuple[int, Any]


class PowerPlan(Order, kw_only=True):
    """``rows`` has what was asked; of ``switched`` nodes it says that they were."""

    rows: tuple[tuple[Cell, Cell], ...] = ()
    switched: tuple[NodeRef, ...] = ()
    programs: tuple[str, ...] = ()  # in the order of these
    master: NodeRef
    now: float


@operation("OP_OOB_COMMAND")
class PowerNodes(Operation[None, PowerPlan], kw_only=True):
    """Have the master run the program that switches the power of nodes, or tells how they are."""

    command: Annotated[OobCommand, hidden("power-on, power-off, power-cycle, power-status, health")]
    node_names: Annotated[
        tuple[NodeName, ...], hidden("default: all that have such a program")
    ] = ()
    timeout: Annotated[
        Annotated[int, Meta(ge=1, le=LONGEST_S)], hidden("seconds that a program may take")
    ] = 60
    ignore_status: Annotated[bool, hidden("switch off what is not marked offline")] = False
    power_delay: Annotated[
        Annotated[float, Meta(ge=0, le=LONGEST_S)], hidden("seconds between switching on two")
    ] = 2.0

    def is_for_root(self) -> bool:
        return True

    def locks(self, config: Config, _: None) -> Wanted:
        nodes = [node.uuid for node in self._nodes(config)]
        return wanted(nodes=nodes) if self.command in LOOKS else wanted(nodes_exclusive=nodes)

    async def prepare(self, cluster: Cluster, _: None) -> PowerPlan:
        config = cluster.config
        plan = PowerPlan(master=config.master().ref, now=cluster.now())
        programs = {node.uuid: program_of(config, node) for node in self._nodes(config)}
        able = [node for node in self._nodes(config) if programs[node.uuid]]
        if self.command in LOOKS:
            told = await cluster.each(
                {n.uuid: self._look(cluster, n.ref, programs[n.uuid]) for n in able}
            )
            cells = {n.uuid: _cell(cluster, n, self.command, told[n.uuid]) for n in able}
            rows = [
                ((NORMAL, node.name), cells.get(node.uuid, (UNAVAILABLE, None)))
                for node in self._nodes(config)
            ]
            return replace(plan, rows=tuple(rows))
        if self.node_names and len(able) < len(self.node_names):
            lacking = next(n.name for n in self._nodes(config) if not programs[n.uuid])
            raise InvalidRequest(
                f"Nothing switches the power of {lacking}: set the node parameter oob_program to "
                "the path of a program that does."
            )
        switched = [node for node in able if self._may_switch(config, node, programs[node.uuid])]
        return replace(
            plan,
            rows=tuple(((NORMAL, node.name), (NORMAL, None)) for node in switched),
            switched=tuple(node.ref for node in switched),
            programs=tuple(programs[node.uuid] for node in switched),
        )

    def recipe(self, cluster: Cluster, plan: PowerPlan) -> Iterator[Step]:
        powered = _SWITCHES.get(self.command)
        for number, (node, program) in enumerate(zip(plan.switched, plan.programs, strict=True)):
            if number and powered and self.power_delay:
                yield act(f"wait before {node}", lambda: cluster.sleep(self.power_delay))
            yield self._switch(cluster, plan, node, program)

    def result(self, plan: PowerPlan) -> list[list[Cell]]:
        return [list(row) for row in plan.rows]

    def _switch(self, cluster: Cluster, plan: PowerPlan, node: NodeRef, program: str) -> Step:
        powered = _SWITCHES.get(self.command)

        def edit(state: State) -> list[Put]:
            present = state.config.nodes[node.uuid]
            if powered is None or present.powered is powered:
                return []
            serial_no = present.serial_no + 1
            return [Put(replace(present, powered=powered, mtime=plan.now, serial_no=serial_no))]

        return Step(
            f"{self.command} {node}",
            do=lambda: self._run(cluster, plan.master, program, node),
            edit=edit,
            point_of_no_return=True,
        )

    async def _look(self, cluster: Cluster, node: NodeRef, program: str) -> Any:
        said = await self._run(cluster, cluster.config.master().ref, program, node)
        return read_answer(self.command, node.name, said)

    async def _run(self, cluster: Cluster, master: NodeRef, program: str, node: NodeRef) -> str:
        return await cluster.call(Programs, master).out_of_band(
            program=program, command=self.command, node=node.name, timeout_s=self.timeout
        )

    def _nodes(self, config: Config) -> Sequence[Node]:
        named = [config.node(name) for name in self.node_names]
        return named or config.sorted_nodes()

    def _may_switch(self, config: Config, node: Node, program: str) -> bool:
        """Tell whether a node is switched; the master is left out unless it was named.

        Raises:
            Conflict: it must not be.
        """
        if self.command is OobCommand.POWER_ON:
            return True
        if node.uuid == config.cluster.master:
            if not self.node_names:
                return False
            raise Conflict(
                f"Node {node.name} is the master, which cannot switch itself; run “{program} "
                f"{self.command} {node.name}” on another machine if you mean it.",
                node=node.name,
            )
        if self.command is OobCommand.POWER_OFF and not (node.offline or self.ignore_status):
            raise Conflict(
                f"Node {node.name} is not marked offline, so it is not switched off; "
                "--ignore-status does it all the same.",
                node=node.name,
            )
        return True


def program_of(config: Config, node: Node) -> str:
    """Return the path of the program that switches a node; empty if there is none."""
    layers = (config.cluster.ndparams, config.groups[node.group].ndparams, node.ndparams)
    return settled(NodeParameters, *layers).oob_program


def read_answer(command: OobCommand, node: NodeName, said: str) -> Any:
    """Read what a program wrote: whether a node has power, or how its parts are.

    Raises:
        NodeFailure: it is not what programs are to write.
    """
    wrong = NodeFailure(
        f"The program for {node} did not answer {command} as it should, but with “{said[:200]}”.",
        node=node,
    )
    try:
        told = json.loads(said)
    except (ValueError, RecursionError) as error:
        raise wrong from error
    match command, told:
        case OobCommand.POWER_STATUS, {"powered": bool(powered)}:
            return {"powered": powered}
        case OobCommand.HEALTH, list(items) if all(map(_is_item, items)):
            return items
        case _:
            raise wrong


def _is_item(item: object) -> bool:
    match item:
        case [str(), str(state)]:
            return state in STATES
        case _:
            return False


def _cell(cluster: Cluster, node: Node, command: OobCommand, told: Any) -> Cell:
    """Return what is told of a node, and say in the job's log what is not as it should be."""
    if isinstance(told, GntError):
        cluster.log(f"{node.name} cannot be asked: {told.message}")
        return NO_DATA, None
    if command is OobCommand.POWER_STATUS and told["powered"] is not node.powered:
        switched, thought = ("on", "off") if told["powered"] else ("off", "on")
        cluster.log(f"{node.name} is switched {switched}, and was thought to be {thought}.")
    if command is OobCommand.HEALTH:
        for item, state in told:
            if state in ("WARNING", "CRITICAL"):
                cluster.log(f"{node.name}: {item} is {state}.")
    return NORMAL, told
