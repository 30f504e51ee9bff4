"""Parameters of operations that requests do not have in the usual form.

Source: rlib2.py of Ganeti 3.0.
"""

from collections.abc import Mapping
from typing import Any

from coordinator.rapi.call import BAD, Call
from coordinator.rapi.failures import refused

Parameters = dict[str, Any]
INSTANCE_NAMES: Mapping[str, str] = {"os": "os_type", "name": "instance_name"}


def new_instance(call: Call) -> Parameters:
    given = call.members()
    match given.pop("__version__", 0):
        case 1:
            return _with_devices(given)
        case 0:
            told = "Instance creation request version 0 is no longer supported"
            raise refused(BAD, told)
        case other:
            raise refused(BAD, f"Unsupported request data version {other}")


def reserved_instance(call: Call) -> Parameters:
    given = call.members()
    return _with_devices({name: given[name] for name in given if name != "__version__"})


def changed_instance(call: Call) -> Parameters:
    return _with_devices(call.members())


def _with_devices(given: Parameters) -> Parameters:
    """Allow blanks between USB devices, as Ganeti's clients write them."""
    hypervisor = given.get("hvparams")
    if isinstance(hypervisor, dict) and isinstance(hypervisor.get("usb_devices"), str):
        usb = hypervisor["usb_devices"].replace(" ", ",")
        return given | {"hvparams": hypervisor | {"usb_devices": usb}}
    return given


def new_instances(call: Call) -> Parameters:
    given = call.members()
    instances = given.get("instances")
    if not isinstance(instances, list) or not all(isinstance(each, dict) for each in instances):
        raise refused(BAD, "Request is missing required 'instances' field in body")
    return given | {"instances": [_allocated(each) for each in instances]}


def _allocated(given: Parameters) -> Parameters:
    left_out = {"OP_ID", "__version__"}
    kept = {name: value for name, value in given.items() if name not in left_out}
    return renamed(kept, INSTANCE_NAMES)


def renamed(given: Parameters, names: Mapping[str, str]) -> Parameters:
    """Return parameters under the names that they have now.

    Raises:
        Refusal: one is given under both.
    """
    if twice := [old for old, new in names.items() if old in given and new in given]:
        told = f"Parameter '{twice[0]}' was renamed to '{names[twice[0]]}', but both are specified"
        raise refused(BAD, told)
    return {names.get(name, name): value for name, value in given.items()}


def reboot(call: Call) -> Parameters:
    given = call.members()
    if "reboot_type" in given and "type" in call.query:
        raise refused(BAD, "Can't overwrite static parameters: reboot_type")
    return {"reboot_type": call.text("type") or "hard"} | given


def replaced_disks(call: Call) -> Parameters:
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


def node_role(call: Call) -> Parameters:
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


def node_migration(call: Call) -> Parameters:
    if "live" in call.query and "mode" in call.query:
        raise refused(BAD, "Only one of 'live' and 'mode' should be passed")
    if "live" in call.query:
        return {"mode": "live" if call.flag("live") else "non-live"}
    if "mode" in call.query:
        return {"mode": call.text("mode")}
    return call.members()


def storage_list(call: Call) -> Parameters:
    return {"output_fields": call.required("output_fields").split(",")}


def storage_change(call: Call) -> Parameters:
    allocatable = call.flag("allocatable", default=True)
    changes = {"allocatable": allocatable} if "allocatable" in call.query else {}
    return {"name": call.required("name"), "changes": changes}


def storage_repair(call: Call) -> Parameters:
    return {"name": call.required("name")}


def tags(call: Call) -> Parameters:
    return {"tags": list(call.query.get("tag", ()))}


def instance_info(call: Call) -> Parameters:
    return {"static": call.flag("static")}


def reinstallation(call: Call) -> Parameters:
    """Return what is to be installed; the query is what older clients send."""
    if call.body is not None and call.query.keys() & {"os", "nostartup"}:
        raise refused(BAD, "Can't combine query and body parameters")
    os_type = call.text("os") or call.member("os", str, None)
    parameters = call.members().get("osparams")
    given = {"os_type": os_type, "osparams": parameters}
    return {name: value for name, value in given.items() if value is not None}


def stopped_meanwhile(call: Call, operation: Parameters) -> list[Parameters]:
    """Stop an instance before an operation, and start it afterwards unless told not to."""
    name = {"instance_name": operation["instance_name"]}
    starts = call.member("start", bool, True) and not call.flag("nostartup")  # noqa: FBT003
    start = [{"OP_ID": "OP_INSTANCE_STARTUP", **name}] if starts else []
    return [{"OP_ID": "OP_INSTANCE_SHUTDOWN", **name}, operation, *start]
