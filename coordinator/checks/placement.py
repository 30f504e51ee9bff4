"""Places of instances: by policy, tags and groups, and whether they could go when a node fails."""

from collections import defaultdict
from collections.abc import Iterator

from common.model.instance import Instance
from common.model.node import Node
from common.model.parameters import Backend, sound
from common.names import MiB, NodeId
from coordinator.allocator.tags import TagRules
from coordinator.checks.finding import Finding, Seen, Severity
from coordinator.state.config import Config


def check_policies(seen: Seen) -> Iterator[Finding]:
    """Name instances that the policy of their group does not allow; those that run go on."""
    for name, why in sorted(seen.outside_policy.items()):
        yield Finding("EINSTANCEPOLICY", "instance", name, why, Severity.WARNING)


def check_nodes_of_instances(seen: Seen) -> Iterator[Finding]:
    """Name instances whose nodes do not go together, or are for no instances."""
    config = seen.config
    for instance in config.made_instances:
        if not seen.concerns(instance.primary_node):
            continue
        nodes = [node for uuid in _nodes(config, instance) if (node := config.nodes.get(uuid))]
        seconds = [node.name for node in nodes[1:]]
        if len(seconds) > 1:
            message = f"its disks are mirrored on several nodes: {', '.join(seconds)}"
            yield Finding("EINSTANCELAYOUT", "instance", instance.name, message, Severity.WARNING)
        if len({node.group for node in nodes}) > 1:
            message = f"its nodes are in several groups: {', '.join(node.name for node in nodes)}"
            yield Finding(
                "EINSTANCESPLITGROUPS", "instance", instance.name, message, Severity.WARNING
            )
        for node in nodes:
            if not node.vm_capable:
                message = f"is on {node.name}, which may run no instances"
                yield Finding("EINSTANCEUNSUITABLENODE", "instance", instance.name, message)


def check_exclusion(seen: Seen) -> Iterator[Finding]:
    """Name nodes with several instances that tags want to be apart."""
    config = seen.config
    rules = TagRules.of(config.cluster.tags)
    for node in config.sorted_nodes():
        if not seen.concerns(node.uuid):
            continue
        by_tag: dict[str, list[str]] = defaultdict(list)
        for instance in config.instances_on(node.uuid):
            for tag in rules.exclusion_tags(instance.tags):
                by_tag[tag].append(instance.name)
        for tag, names in sorted(by_tag.items()):
            if len(names) > 1:
                message = f"has several instances with the tag {tag}: {', '.join(sorted(names))}"
                yield Finding("EEXTAGS", "node", node.name, message, Severity.WARNING)


def check_spare_memory(seen: Seen) -> Iterator[Finding]:
    """Name nodes that could not take all mirrored instances of some other node if that failed."""
    for node, report in seen.answered():
        free = report.facts.memory_free
        for primary, needed in sorted(_needed(seen.config, node).items()):
            if needed > free:
                message = (
                    f"has {free} MiB of memory free, and {needed} MiB would be needed for the "
                    f"instances of {seen.config.nodes[primary].name} if that failed"
                )
                yield Finding("ENODEN1", "node", node.name, message)


def check_flags(seen: Seen) -> Iterator[Finding]:
    """Name nodes whose flags contradict one another."""
    for node in seen.config.sorted_nodes():
        wrong = {
            "marked offline": node.offline,
            "drained": node.drained,
            "not capable of being master": not node.master_capable,
        }
        told = [what for what, is_so in wrong.items() if is_so]
        if node.master_candidate and told:
            message = f"is a master candidate, and {' and '.join(told)}"
            yield Finding("ECLUSTERCFG", "node", node.name, message)


def _needed(config: Config, node: Node) -> dict[NodeId, MiB]:
    """Return the memory that instances would need here, by the node that they would come from."""
    needed: dict[NodeId, MiB] = defaultdict(lambda: MiB(0))
    for instance in config.instances_with_secondary(node.uuid):
        filled = sound(Backend, config.cluster.beparams, instance.beparams)
        if instance.primary_node in config.nodes and filled.get("auto_balance", True):
            needed[instance.primary_node] += filled["maxmem"]
    return needed


def _nodes(config: Config, instance: Instance) -> tuple[NodeId, ...]:
    """Return the nodes of an instance, as far as its disks are known."""
    known = all(uuid in config.disks for uuid in instance.disks)
    return config.nodes_of(instance) if known else (instance.primary_node,)
