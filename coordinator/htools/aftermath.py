"""The cluster as it will be once an allocator's answer is carried out."""

from common.record import replace
from coordinator.allocator.snapshot import NOWHERE, Instance, Node, Snapshot
from coordinator.iallocator.answers import Answer
from coordinator.iallocator.requests import AllocateMany, AllocateOne, AllocateSecondary, Request


def cluster_after(cluster: Snapshot, request: Request, answer: Answer) -> Snapshot:
    """Put new instances on their nodes and others where they move, with their disk space."""
    nodes, instances = list(cluster.nodes), list(cluster.instances)
    for index, homes in answer.after.items():
        _use(nodes, instances[index], sign=+1)
        template = "drbd" if isinstance(request, AllocateSecondary) else instances[index].template
        secondary = homes[1] if len(homes) > 1 else NOWHERE
        instances[index] = replace(
            instances[index], primary=homes[0], secondary=secondary, template=template
        )
        _use(nodes, instances[index], sign=-1)
    news = {}
    if isinstance(request, AllocateOne):
        news = {request.new.instance.name: request.new.instance}
    elif isinstance(request, AllocateMany):
        news = {new.instance.name: new.instance for new in request.news}
    for name, homes in answer.created.items():
        secondary = homes[1] if len(homes) > 1 else NOWHERE
        new = replace(news[name], primary=homes[0], secondary=secondary)
        instances.insert(0, new)  # where hail writes it
        _use(nodes, new, sign=-1)
    return replace(cluster, nodes=tuple(nodes), instances=tuple(instances))


def _use(nodes: list[Node], instance: Instance, *, sign: int) -> None:
    """Give back (+1) or take (-1) what an instance has of its nodes."""
    if instance.forthcoming:
        return
    for index in instance.homes:
        node = nodes[index]
        disk = instance.disk if instance.is_local else 0
        spindles = instance.disk_spindles or 0 if node.exclusive else 0
        nodes[index] = replace(
            node,
            free_disk=node.free_disk + sign * disk,
            free_spindles=node.free_spindles + sign * spindles,
        )
