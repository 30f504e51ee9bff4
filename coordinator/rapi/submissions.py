"""How a request becomes the operations of a job.

What a path names and what the body has are parameters of the operation, under Ganeti's names. A row
here says what else counts: arguments of the query, other names, and what is in no usual form.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from coordinator.rapi import shapes
from coordinator.rapi.call import BAD, Call
from coordinator.rapi.failures import refused
from coordinator.rapi.shapes import Parameters


@dataclass(frozen=True, slots=True)
class Takes:
    """What of a request becomes which parameters.

    Attributes:
        flags: arguments of the query that are 0 or 1, by the parameter's name.
        texts: arguments of the query, likewise.
        renamed: names that Ganeti's clients use for parameters.
        forbidden: parameters that nobody may set this way.
        shape: makes the parameters, where these are made otherwise than from the body.
        fixed: parameters that the path stands for.
        query: arguments that ``shape`` reads.
        body: the JSON type of the body; empty if it is not read.
        around: makes the job's operations of this one, if there are others.
    """

    flags: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    shape: Callable[[Call], Parameters] = Call.members
    fixed: Mapping[str, Any] = field(default_factory=dict)
    query: tuple[str, ...] = ()
    body: str = "object"
    around: Callable[[Call, Parameters], list[Parameters]] = lambda _, operation: [operation]

    def operations(self, opcode: str, call: Call) -> list[Parameters]:
        """Return the operations of the job that a request submits; raises as ``parameters``."""
        return self.around(call, {"OP_ID": opcode} | self.parameters(call))

    @property
    def arguments(self) -> tuple[str, ...]:
        """The arguments of the query."""
        return (*self.query, *self.flags, *self.texts, "dry-run", "reason")

    def parameters(self, call: Call) -> Parameters:
        """Return the parameters that a request gives an operation.

        Raises:
            Refusal: something is given twice, forbidden, or not of its form.
        """
        given = shapes.renamed(self.shape(call), self.renamed)
        for name in self.forbidden:
            if name in given or name in call.query:
                told = f"The parameter {name} cannot be set via RAPI"
                raise refused(HTTPStatus.FORBIDDEN, told)
        static = self._static(call)
        if given.keys() & static.keys():
            twice = ", ".join(sorted(given.keys() & static.keys()))
            raise refused(BAD, f"Can't overwrite static parameters: {twice}")
        return given | static

    def _static(self, call: Call) -> Parameters:
        static: Parameters = dict(self.fixed)
        static |= {name: _named(name, value) for name, value in call.named.items()}
        flags = {"dry-run": "dry_run"} | dict(self.flags)
        static |= {to: call.flag(name) for name, to in flags.items() if name in call.query}
        static |= {to: call.text(name) for name, to in self.texts.items() if name in call.query}
        return static


_NUMBERS = frozenset({"disk"})
_LISTS = frozenset({"instances", "nodes"})


def _named(parameter: str, value: str) -> Any:
    """Return what a path names as the parameter of that name has it."""
    if parameter in _LISTS:
        return [value]
    return int(value) if parameter in _NUMBERS else value


def _tags_of(kind: str) -> Takes:
    return Takes(shape=shapes.tags, query=("tag",), body="", fixed={"kind": kind})


FORCE = {"force": "force"}
REMEMBER = {"no_remember": "no_remember"}
STORAGE = {"storage_type": "storage_type"}

# fmt: off
TAKES: Mapping[str, Takes] = {
    "DELETE /2/groups/{}/tags": _tags_of("nodegroup"),
    "DELETE /2/instances/{}/tags": _tags_of("instance"),
    "DELETE /2/networks/{}/tags": _tags_of("network"),
    "DELETE /2/nodes/{}/tags": _tags_of("node"),
    "DELETE /2/tags": _tags_of("cluster"),
    "GET /2/instances/{}/info": Takes(shape=shapes.instance_info, query=("static",), body=""),
    "GET /2/nodes/{}/storage": Takes(
        texts=STORAGE, shape=shapes.storage_list, query=("output_fields",), body=""),
    "POST /2/groups": Takes(renamed={"name": "group_name"}),
    "POST /2/instances": Takes(renamed=shapes.INSTANCE_NAMES, shape=shapes.new_instance),
    "POST /2/instances-multi-alloc": Takes(shape=shapes.new_instances),
    "POST /2/instances/{}/create": Takes(
        renamed=shapes.INSTANCE_NAMES, shape=shapes.reserved_instance, fixed={"commit": True}),
    "POST /2/instances/{}/reboot": Takes(
        flags={"ignore_secondaries": "ignore_secondaries"}, shape=shapes.reboot, query=("type",)),
    "POST /2/instances/{}/reinstall": Takes(
        shape=shapes.reinstallation, query=("os", "nostartup"), around=shapes.stopped_meanwhile),
    "POST /2/instances/{}/replace-disks": Takes(
        shape=shapes.replaced_disks, query=("mode", "disks", "remote_node", "iallocator")),
    "POST /2/networks": Takes(renamed={"name": "network_name"}),
    "POST /2/nodes/{}/migrate": Takes(shape=shapes.node_migration, query=("live", "mode")),
    "POST /2/nodes/{}/powercycle": Takes(flags=FORCE),
    "PUT /2/groups/{}/assign-nodes": Takes(flags=FORCE),
    "PUT /2/groups/{}/modify": Takes(renamed={
        "custom_ndparams": "ndparams", "custom_ipolicy": "ipolicy",
        "custom_diskparams": "diskparams"}),
    "PUT /2/groups/{}/tags": _tags_of("nodegroup"),
    "PUT /2/instances/{}/activate-disks": Takes(flags={"ignore_size": "ignore_size"}),
    "PUT /2/instances/{}/deactivate-disks": Takes(flags=FORCE),
    "PUT /2/instances/{}/export": Takes(renamed={"destination": "target_node"}),
    "PUT /2/instances/{}/modify": Takes(
        renamed={"custom_beparams": "beparams", "custom_hvparams": "hvparams"},
        shape=shapes.changed_instance),
    "PUT /2/instances/{}/prepare-export": Takes(texts={"mode": "mode"}),
    "PUT /2/instances/{}/shutdown": Takes(flags=REMEMBER),
    "PUT /2/instances/{}/startup": Takes(flags=FORCE | REMEMBER),
    "PUT /2/instances/{}/tags": _tags_of("instance"),
    "PUT /2/modify": Takes(forbidden=("compression_tools",)),
    "PUT /2/networks/{}/tags": _tags_of("network"),
    "PUT /2/nodes/{}/tags": _tags_of("node"),
    "PUT /2/nodes/{}/role": Takes(
        flags={**FORCE, "auto-promote": "auto_promote"}, shape=shapes.node_role, body="string"),
    "PUT /2/nodes/{}/storage/modify": Takes(
        texts=STORAGE, shape=shapes.storage_change, query=("name", "allocatable"), body=""),
    "PUT /2/nodes/{}/storage/repair": Takes(
        texts=STORAGE, shape=shapes.storage_repair, query=("name",), body=""),
    "PUT /2/tags": _tags_of("cluster"),
}
# fmt: on
"""What is not usual of a route; ``{}`` stands for what its path names."""
