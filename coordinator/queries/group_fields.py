"""The fields of a node group; names, titles, kinds and texts are Ganeti's."""

from functools import cached_property
from typing import Any

from common.messages import to_builtins
from common.model.disk_parameters import DISK_PARAMETERS
from common.model.group import Group
from common.model.instance import Instance
from common.model.node import Node
from common.model.parameters import NodeParameters, settled
from common.model.policy import wire_policy
from common.model.template import DiskTemplate
from coordinator.disks.parameters import disk_parameters
from coordinator.queries.field import Field, Kind, entity_fields, table
from coordinator.queries.live import Live
from coordinator.queries.node_fields import node_parameter_fields
from coordinator.state.config import Config


class GroupRow:
    def __init__(self, group: Group, config: Config, live: Live) -> None:
        self.entity = group
        self.config = config
        self.live = live

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        nodes = self.config.sorted_nodes()
        return tuple(node for node in nodes if node.group == self.entity.uuid)

    @cached_property
    def instances(self) -> tuple[Instance, ...]:
        found = (i for node in self.nodes for i in self.config.instances_on(node.uuid))
        return tuple(sorted(found, key=lambda instance: instance.name))

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The filled node parameters."""
        layers = (self.config.cluster.ndparams, self.entity.ndparams)
        values: dict[str, Any] = to_builtins(settled(NodeParameters, *layers))
        return values

    @cached_property
    def disk_parameters(self) -> dict[str, dict[str, Any]]:
        """The filled disk parameters, by template."""
        return {
            template: disk_parameters(self.config, self.entity, DiskTemplate(template))
            for template in DISK_PARAMETERS
        }


def _custom_policy(row: GroupRow) -> dict[str, Any]:
    own = row.entity.ipolicy
    return {} if own is None else wire_policy(own.given())


# fmt: off
_FIELDS: tuple[Field[GroupRow], ...] = (
    Field("name", "Group", Kind.TEXT, "Group name", lambda row: row.entity.name),
    Field("alloc_policy", "AllocPolicy", Kind.TEXT, "Allocation policy for group",
          lambda row: row.entity.alloc_policy),
    Field("custom_diskparams", "CustomDiskParameters", Kind.OTHER, "Custom disk parameters",
          lambda row: row.entity.diskparams),
    Field("custom_ipolicy", "CustomInstancePolicy", Kind.OTHER,
          "Custom instance policy limitations", _custom_policy),
    Field("custom_ndparams", "CustomNDParams", Kind.OTHER, "Custom node parameters",
          lambda row: row.entity.ndparams),
    Field("diskparams", "DiskParameters", Kind.OTHER, "Disk parameters (merged)",
          lambda row: row.disk_parameters),
    Field("ipolicy", "InstancePolicy", Kind.OTHER, "Instance policy limitations (merged)",
          lambda row: wire_policy(row.config.policy_of(row.entity))),
    Field("ndparams", "NDParams", Kind.OTHER, "Node parameters", lambda row: row.parameters),
    Field("node_cnt", "Nodes", Kind.NUMBER, "Number of nodes", lambda row: len(row.nodes)),
    Field("node_list", "NodeList", Kind.OTHER, "List of nodes",
          lambda row: [node.name for node in row.nodes]),
    Field("pinst_cnt", "Instances", Kind.NUMBER, "Number of primary instances",
          lambda row: len(row.instances)),
    Field("pinst_list", "InstanceList", Kind.OTHER, "List of primary instances",
          lambda row: [instance.name for instance in row.instances]),
)
# fmt: on

GROUP_FIELDS = table(_FIELDS, entity_fields("Group"), node_parameter_fields())
