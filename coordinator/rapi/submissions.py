"""How a request becomes the operations of a job.

What a path names and what the body has are parameters of the operation, under Ganeti's names. A row
here says what else counts: arguments of the query, other names, and what is in no usual form.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from coordinator.rapi.call import BAD, Call
from coordinator.rapi.failures import refused

Parameters = dict[str, Any]


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
    """

    flags: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    forbidden: tuple[str, ...] = ()
    shape: Callable[[Call], Parameters] = Call.members
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self, call: Call) -> Parameters:
        """Return the parameters that a request gives an operation.

        Raises:
            Refusal: something is given twice, forbidden, or not of its form.
        """
        given = self.shape(call)
        for old, new in self.renamed.items():
            if old in given:
                if new in given:
                    told = f"Parameter '{old}' was renamed to '{new}', but both are specified"
                    raise refused(BAD, told)
                given[new] = given.pop(old)
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


def _new_instance(call: Call) -> Parameters:
    given = call.members()
    match given.pop("__version__", 0):
        case 1:
            return _with_devices(given)
        case 0:
            told = "Instance creation request version 0 is no longer supported"
            raise refused(BAD, told)
        case other:
            raise refused(BAD, f"Unsupported request data version {other}")


def _changed_instance(call: Call) -> Parameters:
    return _with_devices(call.members())


def _with_devices(given: Parameters) -> Parameters:
    """Allow blanks between USB devices, as Ganeti's clients write them."""
    hypervisor = given.get("hvparams")
    if isinstance(hypervisor, dict) and isinstance(hypervisor.get("usb_devices"), str):
        usb = hypervisor["usb_devices"].replace(" ", ",")
        return given | {"hvparams": hypervisor | {"usb_devices": usb}}
    return given


_INSTANCE_NAMES = {"os": "os_type", "name": "instance_name"}


def _new_instances(call: Call) -> Parameters:
    given = call.members()
    instances = given.get("instances")
    if not isinstance(instances, list) or not all(isinstance(each, dict) for each in instances):
        raise refused(BAD, "Request is missing required 'instances' field in body")
    renamed = Takes(renamed=_INSTANCE_NAMES)
    return given | {"instances": [_renamed(renamed, each) for each in instances]}


def _renamed(takes: Takes, given: Parameters) -> Parameters:
    names = takes.renamed
    if twice := [old for old, new in names.items() if old in given and new in given]:
        raise refused(BAD, f"Parameter '{twice[0]}' was renamed, but both are specified")
    left_out = {"OP_ID", "__version__"}
    return {names.get(key, key): value for key, value in given.items() if key not in left_out}


def _reboot(call: Call) -> Parameters:
    given = call.members()
    if "reboot_type" in given and "type" in call.query:
        raise refused(BAD, "Can't overwrite static parameters: reboot_type")
    return {"reboot_type": call.text("type") or "hard"} | given


def _replaced_disks(call: Call) -> Parameters:
    given = call.members()
    if not given:
        names = ("remote_node", "mode", "disks", "iallocator")
        given = {name: text for name in names if (text := call.text(name)) is not None}
    disks = given.pop("disks", None)
    if isinstance(disks, str) and disks:
        try:
            disks = [int(part) for part in disks.split(",")]
        except ValueError as error:
            raise refused(BAD, f"Invalid disk index passed: {error}") from error
    return given | ({"disks": disks} if disks else {})


def _node_role(call: Call) -> Parameters:
    flags = ("master_candidate", "offline", "drained")
    match call.body:
        case "regular":
            return dict.fromkeys(flags, False)
        case "master-candidate":
            return {"master_candidate": True}
        case "drained" | "offline":
            return {call.body: True}
        case str(other):
            raise refused(BAD, f"Can't set '{other}' role")
        case other:
            kind = type(other).__name__
            raise refused(BAD, f"Body contents: Type is '{kind}', but 'str' is expected")


def _node_migration(call: Call) -> Parameters:
    if "live" in call.query and "mode" in call.query:
        raise refused(BAD, "Only one of 'live' and 'mode' should be passed")
    if "live" in call.query:
        return {"mode": "live" if call.flag("live") else "non-live"}
    if "mode" in call.query:
        return {"mode": call.text("mode")}
    return call.members()


def _storage_list(call: Call) -> Parameters:
    return {"output_fields": call.required("output_fields").split(",")}


def _storage_change(call: Call) -> Parameters:
    allocatable = call.flag("allocatable", default=True)
    changes = {"allocatable": allocatable} if "allocatable" in call.query else {}
    return {"name": call.required("name"), "changes": changes}


def _storage_repair(call: Call) -> Parameters:
    return {"name": call.required("name")}


def _tags(call: Call) -> Parameters:
    return {"tags": list(call.query.get("tag", ()))}


def _instance_info(call: Call) -> Parameters:
    return {"static": call.flag("static")}


def _tags_of(kind: str) -> Takes:
    return Takes(shape=_tags, fixed={"kind": kind})


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
    "GET /2/instances/{}/info": Takes(shape=_instance_info),
    "GET /2/nodes/{}/storage": Takes(texts=STORAGE, shape=_storage_list),
    "POST /2/groups": Takes(renamed={"name": "group_name"}),
    "POST /2/instances": Takes(renamed=_INSTANCE_NAMES, shape=_new_instance),
    "POST /2/instances-multi-alloc": Takes(shape=_new_instances),
    "POST /2/instances/{}/reboot": Takes(
        flags={"ignore_secondaries": "ignore_secondaries"}, shape=_reboot),
    "POST /2/instances/{}/replace-disks": Takes(shape=_replaced_disks),
    "POST /2/networks": Takes(renamed={"name": "network_name"}),
    "POST /2/nodes/{}/migrate": Takes(shape=_node_migration),
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
        shape=_changed_instance),
    "PUT /2/instances/{}/prepare-export": Takes(texts={"mode": "mode"}),
    "PUT /2/instances/{}/shutdown": Takes(flags=REMEMBER),
    "PUT /2/instances/{}/startup": Takes(flags=FORCE | REMEMBER),
    "PUT /2/instances/{}/tags": _tags_of("instance"),
    "PUT /2/modify": Takes(forbidden=("compression_tools",)),
    "PUT /2/networks/{}/tags": _tags_of("network"),
    "PUT /2/nodes/{}/tags": _tags_of("node"),
    "PUT /2/nodes/{}/role": Takes(
        flags={**FORCE, "auto-promote": "auto_promote"}, shape=_node_role),
    "PUT /2/nodes/{}/storage/modify": Takes(texts=STORAGE, shape=_storage_change),
    "PUT /2/nodes/{}/storage/repair": Takes(texts=STORAGE, shape=_storage_repair),
    "PUT /2/tags": _tags_of("cluster"),
}
# fmt: on
"""What is not usual of a route; ``{}`` stands for what its path names."""
