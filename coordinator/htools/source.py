"""Where a command gets the cluster from, and what options change of it before it is used."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from common.errors import GntError, InvalidRequest
from common.record import replace
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.luxi_source import cluster_from_luxi
from coordinator.htools.options import Option, Parsed, Takes, number, yes_no
from coordinator.htools.simulate import simulated
from coordinator.htools.text import parse_cluster
from coordinator.iallocator.missing import missing
from coordinator.iallocator.names import common_domain

TEXT = Option(
    key="text", name="text-data", letter="t", argument="FILE", takes=Takes.SOMETHING,
    completes="file",
    help="read the cluster from FILE",
)  # fmt: skip
LUXI = Option(
    key="luxi", name="luxi", letter="L", argument="SOCKET", takes=Takes.PERHAPS,
    completes="file", without="",
    help="read the cluster from the master's socket",
)  # fmt: skip
RAPI = Option(
    key="rapi", name="master", letter="m", argument="ADDRESS", takes=Takes.SOMETHING,
    completes="host",
    help="read the cluster from the remote API at ADDRESS, a host or a URL",
)  # fmt: skip
RAPI_AUTHORITY = Option(
    key="authority", name="rapi-ca", argument="FILE", takes=Takes.SOMETHING,
    completes="file",
    help="with -m, trust only a server whose certificate one in FILE has signed",
)  # fmt: skip
REQUEST = Option(
    key="request", name="ialloc-src", letter="I", argument="FILE", takes=Takes.SOMETHING,
    completes="file",
    help="read the cluster from FILE, a request to an allocator",
)  # fmt: skip
VERBOSE = Option(
    key="verbosity", name="verbose", letter="v", help="say more; may be repeated", step=1,
    default=1,
)  # fmt: skip
QUIET = Option(key="verbosity", name="quiet", letter="q", help="say less", step=-1)
OFFLINE = Option(
    key="offline", name="offline", letter="O", argument="NODE", takes=Takes.SOMETHING,
    completes="onenode",
    repeats=True, help="treat NODE as offline; may be repeated",
)  # fmt: skip
GROUP = Option(
    key="group", name="group", letter="G", argument="ID", takes=Takes.SOMETHING,
    completes="onegroup",
    help="work on this node group, given by name or UUID",
)  # fmt: skip
MAX_CPU = Option(
    key="max_cpu", name="max-cpu", argument="RATIO", takes=Takes.SOMETHING,
    completes="float",
    read=number("max-cpu ratio", float, positive=True),
    help="most virtual processors a real one, instead of the policy's",
)  # fmt: skip
MIN_DISK = Option(
    key="min_disk", name="min-disk", argument="RATIO", takes=Takes.SOMETHING,
    completes="float", default=0.0,
    read=number("min-disk ratio", float),
    help="share of each node's disk space to keep free, 0 to 1",
)  # fmt: skip
DYNU = Option(
    key="dynu", name="dynu-file", letter="U", argument="FILE", takes=Takes.SOMETHING,
    completes="file",
    help="read what instances use of each resource from FILE",
)  # fmt: skip
IGNORE_DYNU = Option(
    key="ignore_dynu", name="ignore-dynu", default=False,
    help="count no use of resources at all",
)  # fmt: skip
MOND = Option(
    key="mond", name="mond", argument="CHOICE", takes=Takes.PERHAPS,
    completes="choices=yes,no", read=yes_no, default=False,
    help="ask the monitoring agents of all nodes for the load: 'yes' or 'no'",
)  # fmt: skip
MOND_XEN = Option(
    key="mond_xen", name="mond-xen", default=False,
    help="with --mond, ask for what Xen tells of each instance, too",
)  # fmt: skip
MOND_COMPLETE = Option(
    key="mond_complete", name="exit-on-missing-mond-data", default=False,
    help="give up if an agent does not tell all that is asked of it",
)  # fmt: skip
MOND_DATA = Option(
    key="mond_data", name="mond-data", argument="FILE", takes=Takes.SOMETHING,
    completes="file",
    help="take the reports of the monitoring agents from FILE",
)  # fmt: skip
EXCLUSION = Option(
    key="exclusion_tags", name="exclusion-tags", argument="TAG,...", takes=Takes.SOMETHING,
    completes="string",
    read=lambda text: tuple(text.split(",")), default=(),
    help="keep instances apart that share a tag with one of these prefixes",
)  # fmt: skip
SELECT = Option(
    key="select", name="select-instances", argument="INSTS", takes=Takes.SOMETHING,
    completes="manyinstances",
    read=lambda text: tuple(text.split(",")),
    help="move these instances only",
)  # fmt: skip
EXCLUDE = Option(
    key="exclude", name="exclude-instances", argument="INSTS", takes=Takes.SOMETHING,
    completes="manyinstances",
    read=lambda text: tuple(text.split(",")), default=(),
    help="leave these instances where they are",
)  # fmt: skip
STATIC_MEMORY = Option(
    key="static_memory", name="static-kvm-node-memory", argument="N", takes=Takes.SOMETHING,
    completes="integer",
    read=number("node memory", int), default=4096,
    help="MiB that a KVM node needs for itself; 0 to take what it reports",
)  # fmt: skip
SAVE = Option(
    key="save", name="save", letter="S", argument="FILE", takes=Takes.SOMETHING,
    help="write the cluster, as it was and as it would be, to FILE.original and FILE.balanced",
)  # fmt: skip
PRINT_NODES = Option(
    key="print_nodes", name="print-nodes", letter="p", argument="FIELDS", takes=Takes.PERHAPS,
    without="", help="show the nodes before and after, on standard error",
)  # fmt: skip
MACHINE = Option(
    key="machine", name="machine-readable", argument="CHOICE", takes=Takes.PERHAPS,
    completes="choices=yes,no", default=False,
    read=yes_no,
    help="print NAME=VALUE lines for programs; yes or no",
)  # fmt: skip
SIMULATE = Option(
    key="simulate", name="simulate", argument="SPEC", takes=Takes.SOMETHING,
    completes="string", repeats=True,
    help="take an empty cluster: 'alloc_policy,num_nodes,disk,ram,cpu' for each group",
)  # fmt: skip


_SOURCES = ("text", "luxi", "rapi", "simulate")


def load(options: Parsed) -> Snapshot:
    """Get the cluster and apply what options say of loads, tags and names.

    Raises:
        InvalidRequest: there is not one source, or an option does not fit the cluster.
        GntError: the source did not answer.
    """
    sources = [key for key in _SOURCES if options.values.get(key) not in {None, ()}]
    if "simulate" in sources and len(sources) == 2:  # as with Ganeti's, that is no contradiction
        sources.remove("text" if "text" in sources else "simulate")
    if len(sources) > 1:
        raise InvalidRequest("Only one of the rapi, luxi, and data files options should be given.")
    try:
        cluster = adjusted(_from_source(sources, options), options)
    except GntError as error:
        raise InvalidRequest(f"failed to load data, aborting: {error.message}") from error
    return _with_measured_loads(cluster, options)


def _with_measured_loads(cluster: Snapshot, options: Parsed) -> Snapshot:
    values = options.values
    if values.get("mond_data") and not values.get("mond"):
        sys.stderr.write("Warning: --mond-data is only looked at with --mond=yes.\n")
    if not values.get("mond") or values.get("ignore_dynu"):
        return cluster
    from coordinator.htools.monitoring import with_measured_loads  # http takes long to import

    return with_measured_loads(
        cluster,
        read_text(options.mond_data) if values.get("mond_data") else None,
        is_xen=bool(values.get("mond_xen")),
        has_to_be_complete=bool(values.get("mond_complete")),
    )


def _from_source(sources: Sequence[str], options: Parsed) -> Snapshot:
    own_memory = options.values.get("static_memory", STATIC_MEMORY.default)
    match sources:
        case ["text"]:
            return parse_cluster(read_text(options.text))
        case ["luxi"]:
            return cluster_from_luxi(options.luxi, static_memory=own_memory)
        case ["simulate"]:
            return simulated(options.simulate)
        case ["rapi"]:
            from coordinator.htools.rapi_source import cluster_from_rapi  # ssl takes long to import

            return cluster_from_rapi(
                options.rapi,
                static_memory=own_memory,
                authority=options.values.get("authority"),
            )
        case _ if options.values.get("request") is not None:
            return _from_request(options.request, own_memory)
        case _:
            raise InvalidRequest("No backend selected! Exiting.")


def _from_request(path: str, static_memory: int) -> Snapshot:
    """The cluster that a request to an allocator describes, whatever it asks for."""
    from coordinator.iallocator.cluster import read_cluster
    from coordinator.iallocator.fields import Fields
    from coordinator.iallocator.jsontext import parse

    message = Fields.of(parse(read_text(path)), "Parsing input IAllocator message")
    return read_cluster(
        Fields(message.values, "invalid iallocator message"), kvm_node_memory=static_memory
    )


def read_text(path: str) -> str:
    """Read a file.

    Raises:
        InvalidRequest: it cannot be read.
    """
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidRequest(f"{path}: cannot be read ({reason})") from error


def adjusted(cluster: Snapshot, options: Parsed) -> Snapshot:
    """Apply what options say of loads and tags.

    Raises:
        InvalidRequest: a file cannot be read, or an instance is not there.
    """
    values = options.values
    names = {instance.name for instance in cluster.instances}
    suffix = common_suffix(cluster)
    for key in ("select", "exclude"):
        known = names | {name.removesuffix(suffix) for name in names}
        unknown = [name for name in values.get(key) or () if name not in known]
        if unknown:
            raise InvalidRequest(f"Unknown instance(s): {json.dumps(unknown)}")
    instances = cluster.instances
    if values.get("ignore_dynu"):
        instances = tuple(replace(each, load=(0.0, 0.0, 0.0, 0.0)) for each in instances)
    elif values.get("dynu"):
        loads = _parse_loads(read_text(options.dynu))
        instances = tuple(
            replace(each, load=loads[each.name]) if each.name in loads else each
            for each in instances
        )
    extra = tuple(f"htools:iextags:{tag}:" for tag in values.get("exclusion_tags") or ())
    return replace(cluster, instances=instances, more_tags=extra)


def _parse_loads(text: str) -> dict[str, tuple[float, float, float, float]]:
    """Read ``name cpu memory disk network`` lines."""
    loads = {}
    for line in text.splitlines():
        fields = line.split(" ")
        if len(fields) != 5:
            raise InvalidRequest(f"Cannot parse line {line!r} of utilisation data.")
        try:
            cpu, memory, disk, network = map(float, fields[1:])
        except ValueError as error:
            raise InvalidRequest(f"Cannot parse line {line!r} of utilisation data.") from error
        loads[fields[0]] = (cpu, memory, disk, network)
    return loads


def common_suffix(cluster: Snapshot) -> str:
    """The longest domain that all names have; without it they are shown."""
    nodes, instances = cluster.columns
    return common_domain([*nodes.names, *instances.names])


def with_offline(cluster: Snapshot, options: Parsed) -> Snapshot:
    """Apply ``-O`` and ``--max-cpu``.

    Raises:
        InvalidRequest: a name is not that of one node.
    """
    nodes = list(cluster.nodes)
    wrong = []
    for name in options.values.get("offline") or ():
        index = find_node(cluster, name)
        if index is None:
            wrong.append(name)
        else:
            nodes[index] = replace(nodes[index], offline=True)
    if wrong:
        raise InvalidRequest(f"wrong node name(s) set as offline: {','.join(wrong)}\n")
    groups = cluster.groups
    if options.values.get("max_cpu") is not None:
        ratio = options.max_cpu
        groups = tuple(
            replace(group, policy=replace(group.policy, vcpu_ratio=ratio)) for group in groups
        )
    return replace(cluster, nodes=tuple(nodes), groups=groups)


def find_node(cluster: Snapshot, name: str) -> int | None:
    """A node by its name or the only one that goes on with a dot after it."""
    for index, node in enumerate(cluster.nodes):
        if node.name == name:
            return index
    near = [i for i, node in enumerate(cluster.nodes) if node.name.startswith(f"{name}.")]
    return near[0] if len(near) == 1 else None


def warn_of_missing(cluster: Snapshot) -> None:
    """Say on stderr which nodes have less free than what is on them accounts for."""
    for line in missing(*cluster.columns):
        sys.stderr.write(f"{line}\n")
