"""Whether a definition can do what is asked of it."""

from common.errors import InvalidRequest, NodeFailure
from common.model.os_name import check_os_parameters, check_variant, read_os_name
from common.names import check_name, is_uuid
from common.noderpc.operating_systems import WITH_STREAM, ScriptOrder
from noded.images.contents import layout_of
from noded.operating_systems.definition import WITH_PARAMETERS, Definition


def check_order(order: ScriptOrder) -> None:
    """Check what needs no definition: it becomes names of files, and variables.

    Raises:
        InvalidRequest: names what does not fit.
    """
    subject = order.subject
    read_os_name(subject.os)
    check_name(subject.name, "instance")
    if order.old_name:
        check_name(order.old_name, "instance")
    check_os_parameters(order.parameters, what=f"the order for {subject.os}")
    ids = (subject.id, *(disk.id for disk in subject.disks))
    if not all(map(is_uuid, ids)) or any(disk.instance != subject.id for disk in subject.disks):
        raise InvalidRequest(
            f"The disks of {subject.name} are told apart by UUIDs, and are its own."
        )
    if (order.disk is None) is (order.script in WITH_STREAM):
        raise InvalidRequest(
            f"“{order.script}” is run for {'one disk' if order.disk is None else 'all disks'}."
        )
    if order.disk is not None and order.disk >= len(subject.disks):
        raise InvalidRequest(f"{subject.name} has no disk {order.disk}.")


def check_fits(order: ScriptOrder, definition: Definition) -> None:
    """Refuse what a definition does not have.

    Raises:
        InvalidRequest: a variant or parameter that it does not declare.
        NodeFailure: it has no such script, or is for another hypervisor.
    """
    subject, name = order.subject, definition.name
    if order.script not in definition.scripts:
        raise NodeFailure(
            f"The operating system {name} has no script “{order.script}” on this node.", os=name
        )
    if not definition.knows_formats and any(layout_of(d.backing).is_qcow2 for d in subject.disks):
        raise NodeFailure(
            f"The scripts of {name} take a disk byte for byte, and {subject.name} has one in the "
            "format qcow2; the operating system “image” can be put on such a one.",
            os=name,
        )
    if definition.hypervisors and subject.hypervisor not in definition.hypervisors:
        raise NodeFailure(
            f"The operating system {name} is for {', '.join(definition.hypervisors)}, and "
            f"{subject.name} is run by {subject.hypervisor}.",
            os=name,
        )
    check_variant(subject.os, definition.variants, may_be_unknown=order.may_be_unknown)
    known = [parameter for parameter, _ in definition.parameters]
    if definition.api_version < WITH_PARAMETERS:
        known = []
    for parameter in order.parameters:
        if parameter.lower() not in (each.lower() for each in known):
            raise InvalidRequest(
                f"The operating system {name} has no parameter “{parameter}”; it has "
                f"{', '.join(known) or 'none'}.",
                parameter=parameter,
            )
