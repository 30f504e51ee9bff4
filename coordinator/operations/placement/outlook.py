"""What the allocator makes of each group: how balanced and how safe it is, and what still fits.

NumPy is loaded with this, as with snapshots: import it late.
"""

from common.errors import GntError
from common.figures import GroupFigures, Outlook
from common.model.group import Group
from common.model.template import DiskTemplate
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import standing_of
from coordinator.disks.exclusive import is_exclusive
from coordinator.operations.devices import DiskRequest
from coordinator.operations.placement.look import Look
from coordinator.operations.placement.questions import CapacityQuestion, answer

MOST = 200  # instances that are counted in a group; if more fit, nobody has to act


def outlook(look: Look) -> Outlook:
    """Judge each group that has nodes by what was seen."""
    template = DiskTemplate(look.config.cluster.enabled_disk_templates[0])
    model = ClusterModel(look.snapshot)
    groups = []
    for index, members in model.groups.items():
        group = look.config.group(model.snapshot.groups[index].uuid)
        groups.append(
            GroupFigures(
                name=group.name,
                score=standing_of(model, members).value,
                unsafe=len(model.failing(members)),
                capacity=_capacity(look, template, group),
            )
        )
    return Outlook(groups=tuple(groups), template=template)


def _capacity(look: Look, template: DiskTemplate, group: Group) -> int | None:
    """Count what ``gnt-cluster capacity`` does of instances that the policy has as standard."""
    size = look.config.cluster.ipolicy.std
    count = size.disk_count if template.traits.has_disks else 0
    nodes = [node for node in look.config.nodes.values() if node.group == group.uuid]
    is_apart = any(is_exclusive(look.config, node.uuid) for node in nodes)
    spindles = max(1, size.spindle_use // max(1, count)) if is_apart else None
    try:
        question = CapacityQuestion(
            disk_template=template,
            disks=(DiskRequest(size=size.disk_size, spindles=spindles),) * count,
            beparams={
                "memory": size.memory_size,
                "vcpus": size.cpu_count,
                "spindle_use": size.spindle_use,
            },
            group=group.name,
            limit=MOST,
        )
        return int(answer(look, question)["count"])
    except GntError:  # as of disks that are always adopted, or kept by one of many providers
        return None
