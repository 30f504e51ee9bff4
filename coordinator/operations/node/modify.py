"""Change a node's role or parameters."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec.structs import replace

from common.errors import Conflict, InvalidRequest
from common.messages import Order
from common.model.node import Node
from common.model.parameters import edited_of_nodes
from coordinator.checks.parameters import bad_of_node, check_parameters
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation, operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.fields import MasterCapable, NodeArgument, SecondaryAddress, VmCapable
from coordinator.operations.locking import wanted
from coordinator.operations.node.addresses import check_answers_at, check_free
from coordinator.operations.node.distribution import give_files
from coordinator.operations.node.links import MirrorLink, find_links, link_anew
from coordinator.operations.node.pool import (
    change_node,
    check_master_stays,
    comes_back_to_room,
    erase_state,
    promote,
    some,
    successors,
)
from coordinator.operations.node.power import program_of
from coordinator.operations.node.remnants import clear_remnants
from coordinator.operations.node.roster import tell_roster
from coordinator.operations.parameter import Syntax, option
from coordinator.operations.step import Step
from coordinator.state.config import Config

_TOLD = (
    "offline",
    "drained",
    "master_candidate",
    "master_capable",
    "vm_capable",
    "powered",
    "primary_ip",
    "secondary_ip",
)


class ModifyPlan(Order, kw_only=True):
    before: tuple[Node, ...]
    after: tuple[Node, ...]  # the node itself first, then those promoted for it
    reachable: bool
    links: tuple[MirrorLink, ...] = ()  # that take another address
    files: tuple[str, ...] = ()  # that all nodes have, for one that comes back
    now: float = 0.0


@operation("OP_NODE_SET_PARAMS")
class ModifyNode(Operation[None, ModifyPlan], kw_only=True):
    """Change what a node is for, or its parameters."""

    node_name: NodeArgument
    master_candidate: Annotated[
        bool | None, option("-C", "--master-candidate", help="yes or no", syntax=Syntax.YES_NO)
    ] = None
    drained: Annotated[
        bool | None,
        option("-D", "--drained", help="takes no new instances", syntax=Syntax.YES_NO),
    ] = None
    offline: Annotated[
        bool | None, option("-O", "--offline", help="is not asked at all", syntax=Syntax.YES_NO)
    ] = None
    master_capable: MasterCapable = None
    vm_capable: VmCapable = None
    primary_ip: Annotated[
        str | None,
        option(
            "--primary-ip",
            help="another address, which the machine has already; its instances go on",
            syntax=Syntax.ADDRESS,
        ),
    ] = None
    secondary_ip: SecondaryAddress = None
    powered: Annotated[
        bool | None,
        option(
            "--node-powered", help="whether it has power, if it is offline", syntax=Syntax.YES_NO
        ),
    ] = None
    ndparams: Annotated[
        dict[str, Any] | None,
        option("--node-parameters", help="NAME=VALUE,…", syntax=Syntax.KEYVAL),
    ] = None
    auto_promote: Annotated[
        bool,
        option("--auto-promote", help="fill the pool with other nodes", syntax=Syntax.FLAG),
    ] = False
    force: Annotated[
        bool,
        option(
            "-f",
            "--force",
            help="even if the pool gets too small, it has instances, or the master does not reach "
            "its secondary address",
            syntax=Syntax.FLAG,
        ),
    ] = False

    def is_for_root(self) -> bool:
        return bool(self.master_candidate or self.auto_promote)

    def locks(self, config: Config, _: None) -> Wanted:
        node = config.node(self.node_name)
        changes_pool = self.auto_promote or self.master_candidate is not None
        others = [n.uuid for n in config.sorted_nodes()] if changes_pool else []
        return wanted(nodes_exclusive=[node.uuid, *others])

    async def prepare(self, cluster: Cluster, _: None) -> ModifyPlan:
        config = cluster.config
        before = config.node(self.node_name)
        after = self._changed(before, cluster.now())
        self._check_power(config, before, after)
        if after == replace(before, mtime=after.mtime, serial_no=after.serial_no):
            if not self._asks_for_anything():
                raise InvalidRequest(f"Nothing to change on node {before.name}.")
            # Ganeti's “gnt-node power off” marks a node offline first, whether it is or not.
            cluster.log(f"Node {before.name} is as it was asked for already.")
            return ModifyPlan(before=(before,), after=(before,), reachable=True)
        check_master_stays(config, before, after)
        if after.ndparams != before.ndparams:
            check_parameters(bad_of_node(config, after), known=bad_of_node(config, before))
        instances = config.instances_on(before.uuid)
        there = (*instances, *config.instances_with_secondary(before.uuid))
        if self.vm_capable is False and there:
            raise Conflict(
                f"Node {before.name} has instances, or copies of their disks ({some(there)}); move "
                "them away first."
            )
        if after.offline and not before.offline and instances and not self.force:
            raise Conflict(
                f"Node {before.name} has instances ({some(instances)}); move them away first, "
                "or, if the node is dead, add --force, and fail them over then."
            )
        if (after.primary_ip, after.secondary_ip) != (before.primary_ip, before.secondary_ip):
            if replace(after, primary_ip="", secondary_ip="") != replace(
                before, primary_ip="", secondary_ip="", mtime=after.mtime, serial_no=after.serial_no
            ):
                raise InvalidRequest(
                    f"Change the addresses of {before.name} by themselves, and the rest in "
                    "another command: what fails in between is then undone."
                )
            check_free(config, after)
            await check_answers_at(cluster, before, after, may_be_silent=self.force)
        promoted = self._promoted(config, before, after, cluster.now())
        if self.master_candidate is None and comes_back_to_room(config, before, after):
            cluster.log(
                f"There could be more master candidates; {after.name} becomes one again by "
                f"“gnt-node modify --master-candidate=yes {after.name}”."
            )
        return ModifyPlan(
            before=(before, *(config.nodes[node.uuid] for node in promoted)),
            after=(after, *promoted),
            reachable=not after.offline,
            links=await find_links(cluster, before, after),
            files=config.cluster.distributed_files if before.offline else (),
            now=cluster.now(),
        )

    def recipe(self, cluster: Cluster, plan: ModifyPlan) -> Iterator[Step]:
        pairs = list(zip(plan.before, plan.after, strict=True))
        if plan.before == plan.after:
            return
        # The pool changes by one node a commit, and is filled up before it loses a node.
        for before, after in (*pairs[1:], pairs[0]):
            if after.master_candidate and not before.master_candidate:
                yield from promote(cluster, before, after)
            else:
                yield change_node(before, after)
        before, after = plan.before[0], plan.after[0]
        for link in plan.links:
            yield from link_anew(cluster, link, plan.now)
        if before.master_candidate and not after.master_candidate:
            yield tell_roster(cluster)
        left = before.master_candidate or before.offline  # while it was offline, perhaps
        if left and not after.master_candidate and plan.reachable:
            yield erase_state(cluster, after)
        if before.offline and plan.reachable:
            yield clear_remnants(cluster, after)
            yield from give_files(cluster, after, plan.files)

    def result(self, plan: ModifyPlan) -> list[list[Any]]:
        before, after = plan.before[0], plan.after[0]
        return [
            [name, getattr(after, name)]
            for name in _TOLD
            if getattr(before, name) != getattr(after, name)
        ]

    def _asks_for_anything(self) -> bool:
        return self.ndparams is not None or any(each is not None for each in self._told().values())

    def _told(self) -> dict[str, Any]:
        return {
            "master_candidate": self.master_candidate,
            "drained": self.drained,
            "offline": self.offline,
            "master_capable": self.master_capable,
            "vm_capable": self.vm_capable,
            "powered": self.powered,
            "primary_ip": self.primary_ip,
            "secondary_ip": self.secondary_ip,
        }

    def _changed(self, node: Node, now: float) -> Node:
        wishes = {key: value for key, value in self._told().items() if value is not None}
        if sum(value is True for value in (self.offline, self.drained, self.master_candidate)) > 1:
            raise InvalidRequest(
                "A node is offline, drained or a master candidate: only one of them."
            )
        if self.master_candidate and not wishes.get("master_capable", node.master_capable):
            raise Conflict(f"Node {node.name} is not master-capable.", node=node.name)
        # Each of these states excludes being a candidate.
        if self.offline or self.drained or self.master_capable is False:
            wishes["master_candidate"] = False
        if self.offline:
            wishes["drained"] = False
        if self.drained or self.master_candidate:
            wishes["offline"] = False
        if self.master_candidate:
            wishes["drained"] = False
        if self.secondary_ip is not None and self.secondary_ip == (
            self.primary_ip or node.primary_ip
        ):
            wishes["secondary_ip"] = ""
        if self.ndparams is not None:
            wishes["ndparams"] = edited_of_nodes(node.ndparams, self.ndparams)
        if not wishes.get("drained", node.drained):
            wishes["maintenance"] = None
        return replace(node, **wishes, mtime=now, serial_no=node.serial_no + 1)

    def _check_power(self, config: Config, before: Node, after: Node) -> None:
        if self.powered is not None and not program_of(config, before):
            raise InvalidRequest(
                f"Nothing switches the power of {before.name}, which has no oob_program, so "
                "whether it is on is not kept."
            )
        if self.powered is not None and not before.offline:
            raise Conflict(f"Node {before.name} is not marked offline, so it is known to be on.")
        if before.offline and not after.offline and not after.powered:
            raise Conflict(
                f"Node {before.name} is switched off: “gnt-node power on {before.name}” first, or "
                "add --node-powered=yes if it is on."
            )

    def _promoted(self, config: Config, before: Node, after: Node, now: float) -> tuple[Node, ...]:
        """Return the nodes to promote so that the pool stays as large as it should be."""
        chosen = () if after.master_candidate else successors(config, before, now)
        if chosen and not self.auto_promote and not self.force:
            raise Conflict(
                f"Without {before.name} there are fewer master candidates than there could be; "
                "add --auto-promote to make others candidates, or --force to go without."
            )
        return chosen if self.auto_promote else ()
