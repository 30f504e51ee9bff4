"""Where a command gets the cluster from, and what options change of it before it is used."""

import json
from collections.abc import Sequence
from pathlib import Path

from common.errors import GntError, InvalidRequest
from common.record import replace
from coordinator.allocator.snapshot import Snapshot
from coordinator.htools.luxi_source import reported_by_luxi, with_own_memory
from coordinator.htools.options import Parsed
from coordinator.htools.output import tell
from coordinator.htools.simulate import simulated
from coordinator.htools.text import parse_cluster
from coordinator.iallocator.missing import missing
from coordinator.iallocator.names import common_suffix

_SOURCES = ("text_data", "luxi", "master", "simulate")


def load(options: Parsed) -> Snapshot:
    """Get the cluster and apply what options say of loads, tags and names.

    Raises:
        InvalidRequest: there is not one source, or an option does not fit the cluster.
        GntError: the source did not answer.
    """
    sources = [key for key in _SOURCES if options.get(key) not in {None, ()}]
    if "simulate" in sources and len(sources) == 2:  # as with Ganeti's, that is no contradiction
        sources.remove("text_data" if "text_data" in sources else "simulate")
    if len(sources) > 1:
        raise InvalidRequest("Only one of the rapi, luxi, and data files options should be given.")
    try:
        cluster = adjusted(_from_source(sources, options), options)
    except GntError as error:
        raise InvalidRequest(f"failed to load data, aborting: {error.message}") from error
    return _with_measured_loads(cluster, options)


def _with_measured_loads(cluster: Snapshot, options: Parsed) -> Snapshot:
    if options.get("mond_data") and not options.get("mond"):
        tell("Warning: --mond-data is only looked at with --mond=yes.")
    if not options.get("mond") or options.get("ignore_dynu"):
        return cluster
    from coordinator.htools.monitoring import with_measured_loads  # http takes long to import

    return with_measured_loads(
        cluster,
        read_text(options.mond_data) if options.get("mond_data") else None,
        is_xen=bool(options.get("mond_xen")),
        has_to_be_complete=bool(options.get("exit_on_missing_mond_data")),
    )


def _from_source(sources: Sequence[str], options: Parsed) -> Snapshot:
    own_memory = options.get("static_kvm_node_memory") or 0
    match sources:
        case ["text_data"]:
            return parse_cluster(read_text(options.text_data))
        case ["luxi"]:
            cluster, is_kvm = reported_by_luxi(options.luxi)
        case ["simulate"]:
            return simulated(options.simulate)
        case ["master"]:
            from coordinator.htools.rapi_source import reported_by_rapi  # ssl takes long to import

            authority = options.get("rapi_ca")
            cluster, is_kvm = reported_by_rapi(options.master, authority=authority)
        case _ if options.get("ialloc_src") is not None:
            return _from_request(options.ialloc_src, own_memory)
        case _:
            raise InvalidRequest("No backend selected! Exiting.")
    return with_own_memory(cluster, own_memory) if is_kvm else cluster


def _from_request(path: str, static_memory: int) -> Snapshot:
    """The cluster that a request to an allocator describes, whatever it asks for."""
    from coordinator.iallocator.cluster import read_cluster, read_message
    from coordinator.iallocator.jsontext import parse

    return read_cluster(read_message(parse(read_text(path))), kvm_node_memory=static_memory)


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
    names = {instance.name for instance in cluster.instances}
    suffix = common_suffix(cluster)
    for key in ("select_instances", "exclude_instances"):
        known = names | {name.removesuffix(suffix) for name in names}
        unknown = [name for name in options.get(key) or () if name not in known]
        if unknown:
            raise InvalidRequest(f"Unknown instance(s): {json.dumps(unknown)}")
    instances = cluster.instances
    if options.get("ignore_dynu"):
        instances = tuple(replace(each, load=(0.0, 0.0, 0.0, 0.0)) for each in instances)
    elif options.get("dynu_file"):
        loads = _parse_loads(read_text(options.dynu_file))
        instances = tuple(
            replace(each, load=loads[each.name]) if each.name in loads else each
            for each in instances
        )
    extra = tuple(f"htools:iextags:{tag}:" for tag in options.get("exclusion_tags") or ())
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


def with_offline(cluster: Snapshot, options: Parsed) -> Snapshot:
    """Apply ``-O`` and ``--max-cpu``.

    Raises:
        InvalidRequest: a name is not that of one node.
    """
    nodes = list(cluster.nodes)
    wrong = []
    for name in options.get("offline") or ():
        index = find_node(cluster, name)
        if index is None:
            wrong.append(name)
        else:
            nodes[index] = replace(nodes[index], offline=True)
    if wrong:
        raise InvalidRequest(f"wrong node name(s) set as offline: {','.join(wrong)}\n")
    groups = cluster.groups
    if options.get("max_cpu") is not None:
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
        tell(line)
