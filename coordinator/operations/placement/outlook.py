"""What the allocator makes of each group: how balanced and how safe it is, and what still fits.

NumPy is loaded with this, as with snapshots: import it late.
"""

from common.errors import GntError
from common.figures import GroupFigures, Outlook
from common.model.template import DiskTemplate
from common.names import GroupName
from coordinator.allocator.model.cluster_model import ClusterModel
from coordinator.allocator.model.state import standing_of
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
        name = model.snapshot.groups[index].name
        groups.append(
            GroupFigures(
                name=name,
                score=standing_of(model, members).value,
                unsafe=len(model.failing(members)),
                capacity=_capacity(look, template, GroupName(name)),
            )
        )
    return Outlook(groups=tuple(groups), template=template)


def _capacity(look: Look, template: DiskTemplate, group: GroupName) -> int | None:
    """Count what ``gnt-cluster capacity`` does of instances that the policy has as standard."""
    size = look.config.cluster.ipolicy.std
    count = size.disk_count if template.traits.has_disks else 0
    try:
        question = CapacityQuestion(
            disk_template=template,
            disks=(DiskRequest(size=size.disk_size),) * count,
            beparams={
                "memory": size.memory_size,
                "vcpus": size.cpu_count,
                "spindle_use": size.spindle_use,
            },
            group=group,
            limit=MOST,
        )
        return int(answer(look, question)["count"])
    except GntError:  # as of disks that are always adopted, or kept by one of many providers
        return None
