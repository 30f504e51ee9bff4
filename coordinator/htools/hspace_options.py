"""The command line of ``hspace``."""

from common.errors import InvalidRequest
from common.names import MiB
from coordinator.allocator.policy import TEMPLATES, Spec
from coordinator.htools import source
from coordinator.htools.options import Option, Takes, number
from coordinator.htools.simulate import parse_unit


def _template(text: str) -> str:
    if text not in TEMPLATES:
        raise InvalidRequest(f'Invalid string value for type DiskTemplate: "{text}"')
    return text


def _spec(text: str) -> Spec:
    fields = text.split(",")
    if len(fields) not in {3, 4}:
        raise InvalidRequest(f"Invalid specification '{text}', expected disk,ram,cpu[,spindles]")
    try:
        cpus, spindles = int(fields[2]), int(fields[3]) if len(fields) == 4 else 1
    except ValueError as error:
        raise InvalidRequest(
            f"Invalid specification '{text}': processors and spindles are whole numbers"
        ) from error
    return Spec(
        memory_size=MiB(parse_unit(fields[1])), cpu_count=cpus, disk_count=1,
        disk_size=MiB(parse_unit(fields[0])), nic_count=0, spindle_use=spindles,
    )  # fmt: skip


OPTIONS = (
    source.PRINT_NODES,
    source.TEXT,
    Option(
        key="template", name="disk-template", argument="TEMPLATE", takes=Takes.SOMETHING,
        completes=f"choices={','.join(TEMPLATES)}",
        read=_template, help="what the disks of the instances are to be [the cluster's first]",
    ),
    Option(
        key="spindle_use", name="spindle-use", argument="SPINDLES", takes=Takes.SOMETHING,
        completes="float",
        read=number("spindles", int, positive=True),
        help="spindle use of each instance [the cluster's standard]",
    ),
    source.SIMULATE,
    source.RAPI,
    source.RAPI_AUTHORITY,
    source.LUXI,
    source.REQUEST,
    source.VERBOSE,
    source.QUIET,
    Option(
        key="independent", name="independent-groups", default=False,
        help="leave out a group whose nodes could not all be emptied, instead of giving up",
    ),
    Option(
        key="accept", name="accept-existing-errors", default=False,
        help="go on where N+1 fails already, as long as it fails nowhere else",
    ),
    source.OFFLINE,
    Option(
        key="check", name="no-capacity-checks", default=True, without=False,
        help="do not look at whether each node could still be emptied",
    ),
    source.MACHINE,
    source.MAX_CPU,
    Option(
        key="length", name="max-length", letter="l", argument="N", takes=Takes.SOMETHING,
        completes="integer",
        read=number("max solution length", int), default=-1,
        help="stop after so many instances; less than 0 is no limit",
    ),
    source.MIN_DISK,
    Option(
        key="standard", name="standard-alloc", argument="STDSPEC", takes=Takes.SOMETHING,
        completes="string",
        read=_spec, help="size of equal instances, as disk,ram,cpu [the cluster's standard]",
    ),
    Option(
        key="tiered", name="tiered-alloc", argument="TSPEC", takes=Takes.SOMETHING,
        completes="string",
        read=_spec, help="size to shrink from, as disk,ram,cpu [the largest the cluster allows]",
    ),
    Option(
        key="save", name="save", letter="S", argument="FILE", takes=Takes.SOMETHING,
        help="write the cluster, as filled, to FILE.tiered and FILE.standard",
    ),
    source.STATIC_MEMORY,
)  # fmt: skip
