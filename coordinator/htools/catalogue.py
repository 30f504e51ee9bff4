"""Every option of the tools, once; each tool names those that it has."""

from __future__ import annotations

from math import isfinite

from common.errors import InvalidRequest
from common.model.template import DiskTemplate
from common.record import replace
from coordinator.htools.options import Argument, Option, number, one_of, words

KVM_NODE_MEMORY = 4096
"""MiB that Ganeti's tools reckon a KVM node needs for itself, whatever the node says."""

_FILE, _PREFIX = Argument("FILE", "file"), Argument("FILE")
_YES_NO = replace(
    one_of("CHOICE", {"yes": True, "no": False}, "Invalid choice '{}', pass either 'yes' or 'no'"),
    is_optional=True,
)
_TAGS = Argument("TAG,...", "string", words)
_INSTANCES = Argument("INSTS", "manyinstances", words)
_PRIORITY = one_of("PRIO", {"low": 10, "normal": 0, "high": -10}, "Unknown priority '{}'")
_TEMPLATE = one_of(
    "TEMPLATE",
    {str(template): str(template) for template in DiskTemplate},
    'Invalid string value for type DiskTemplate: "{}"',
)


def _spec(shown: str) -> Argument:
    def read(text: str) -> object:
        from coordinator.htools.simulate import parse_spec

        return parse_spec(text)

    return Argument(shown, "string", read)


def _factor(what: str) -> Argument:
    argument = number("FACTOR", what, float)

    def read(text: str) -> float:
        value: float = argument.read(text)
        if not isfinite(value):
            raise InvalidRequest(f"{what}: '{text}' is not a finite number")
        return value

    return replace(argument, read=read)


_EVERY = (
    # Where the cluster comes from.
    Option("text-data", "read the cluster from FILE", "t", _FILE),
    Option("luxi", "read the cluster from the master's socket", "L",
           Argument("SOCKET", "file", is_optional=True), without=""),
    Option("master", "read the cluster from the remote API at ADDRESS, a host or a URL", "m",
           Argument("ADDRESS", "host")),
    Option("rapi-ca", "with -m, trust only a server whose certificate one in FILE has signed", "",
           _FILE),
    Option("ialloc-src", "read the cluster from FILE, a request to an allocator", "I", _FILE),
    Option("simulate",
           "take an empty cluster: 'alloc_policy,num_nodes,disk,ram,cpu' for each group", "",
           Argument("SPEC", "string"), repeats=True),
    # What is changed of it.
    Option("offline", "treat NODE as offline; may be repeated", "O", Argument("NODE", "onenode"),
           repeats=True),
    Option("static-kvm-node-memory",
           "MiB that a KVM node needs for itself; 0 to take what it reports", "",
           number("N", "static node memory"), KVM_NODE_MEMORY),
    Option("max-cpu", "most virtual processors a real one, instead of the policy's", "",
           number("RATIO", "max-cpu ratio", float, positive=True)),
    Option("min-disk", "share of each node's disk space to keep free, 0 to 1", "",
           number("RATIO", "min-disk ratio", float), 0.0),
    Option("exclusion-tags", "keep instances apart that share a tag with one of these prefixes", "",
           _TAGS, ()),
    Option("dynu-file", "read what instances use of each resource from FILE", "U", _FILE),
    Option("ignore-dynu", "count no use of resources at all"),
    Option("mond", "ask the monitoring agents of all nodes for the load: 'yes' or 'no'", "",
           _YES_NO),
    Option("mond-data", "take the reports of the monitoring agents from FILE", "", _FILE),
    Option("mond-xen", "with --mond, ask for what Xen tells of each instance, too"),
    Option("exit-on-missing-mond-data", "give up if an agent does not tell all it is asked"),
    # What is shown.
    Option("verbose", "say more; may be repeated", "v", default=1, step=1),
    Option("quiet", "say less", "q", step=-1, counts_in="verbose"),
    Option("print-nodes", "show the nodes before and after, on standard error", "p",
           Argument("FIELDS", is_optional=True), without=""),
    Option("print-instances", "show where every instance ends up, on standard error"),
    Option("print-commands",
           "list the commands that make the moves; with FILE, write them there as a script", "C",
           Argument("FILE", is_optional=True), without=""),
    Option("machine-readable", "print NAME=VALUE lines for programs; yes or no", "", _YES_NO),
    Option("no-headers", "leave out the header line"),
    Option("print-moves", "after each round, list where instances are while it lasts"),
    Option("one-step-only", "show the first round only, a node a line"),
    Option("save", "write the cluster, as it was and as it would be, to FILE.original and "
           "FILE.balanced", "S", _PREFIX),
    Option("output-dir", "write the files to this directory", "d", Argument("PATH", "dir"), "."),
    # What may be moved or placed.
    Option("group", "work on this node group, given by name or UUID", "G",
           Argument("ID", "onegroup")),
    Option("select-instances", "move these instances only", "", _INSTANCES),
    Option("exclude-instances", "leave these instances where they are", "", _INSTANCES, ()),
    Option("restrict-allocation-to", "allocate only on these nodes", "",
           Argument("NODE,...", "manynodes", words)),
    Option("node-tags", "reboot only nodes with one of these tags", "", _TAGS),
    Option("evac-mode", "only empty nodes that are offline or drained", "E"),
    Option("restricted-migration",
           "never move a primary onto a new node; when emptying, migrate off drained nodes only"),
    Option("no-disk-moves", "move no disks: only migrate and fail over"),
    Option("no-instance-moves", "move no primaries: only replace secondaries"),
    Option("ignore-soft-errors", "go beyond limits that may be exceeded"),
    Option("no-capacity-checks", "do not look at whether each node could still be emptied"),
    # How far it goes.
    Option("look-ahead", "when no move helps by itself, try N of them with one more after each "
           "[8]; 0 looks one step ahead only", "", number("N", "look ahead", positive=True)),
    Option("strict-compat", "look one step ahead only: the moves of Ganeti's hbal, in its order"),
    Option("max-length", "stop after N moves, or instances; less than 0 is no limit", "l",
           number("N", "max solution length"), -1),
    Option("min-score", "stop when the score is this close to the best possible one", "e",
           number("EPSILON", "epsilon", float), 1e-9),
    Option("min-gain", "stop when a move gains less than this", "g",
           number("DELTA", "min gain", float), 0.01),
    Option("min-gain-limit", "heed --min-gain only once the score is below this", "",
           number("SCORE", "min gain limit", float), 0.1),
    Option("no-simulation",
           "say how the cluster stands, without trying whether balancing helps"),
    # How moves are made.
    Option("exec", "make the moves, as jobs; needs -L", "X"),
    Option("first-job-group", "make only the first set of moves that can run side by side"),
    Option("reason", "why, for the trail of the jobs", "", Argument("REASON")),
    Option("priority", "of the jobs: low, normal or high", "", _PRIORITY),
    # Of hroller.
    Option("offline-maintenance", "reckon that all instances are shut down, so that none fails "
           "over"),
    Option("full-evacuation", "move copies off the nodes as well"),
    Option("skip-non-redundant", "leave out nodes with an instance that is not mirrored"),
    Option("ignore-non-redundant", "pay no heed to instances that are not mirrored"),
    Option("force", "go on when it is not known which node is the master", "f"),
    # Of hspace.
    Option("disk-template", "what the disks of the instances are to be [the cluster's first]", "",
           _TEMPLATE),
    Option("spindle-use", "spindle use of each instance [the cluster's standard]", "",
           replace(number("SPINDLES", "spindles", positive=True), completes="float")),
    Option("independent-groups",
           "leave out a group whose nodes could not all be emptied, instead of giving up"),
    Option("accept-existing-errors",
           "go on where N+1 fails already, as long as it fails nowhere else"),
    Option("standard-alloc", "size of equal instances, as disk,ram,cpu [the cluster's standard]",
           "", _spec("STDSPEC")),
    Option("tiered-alloc",
           "size to shrink from, as disk,ram,cpu [the largest the cluster allows]", "",
           _spec("TSPEC")),
    # Of hsqueeze.
    Option("minimal-resources", "turn nodes on when one has no room for FACTOR standard instances",
           "", _factor("minimal resources"), 2.0),
    Option("target-resources",
           "turn nodes off as long as each keeps room for FACTOR standard instances", "",
           _factor("target resources"), 2.0),
    # Of all.
    Option("version", "show the version of the program", "V"),
    Option("help", "show help", "h"),
    Option("help-completion", "tell shells how to complete the options"),
)  # fmt: skip

_BY_NAME = {option.name: option for option in _EVERY}


def named(names: str, **told: str) -> tuple[Option, ...]:
    """The options of a tool.

    Long names are separated by blanks. What some options do in this tool is ``told`` by name, with
    underscores for dashes.
    """
    chosen = (_BY_NAME[name] for name in names.split())
    return tuple(replace(one, help=told[one.key]) if one.key in told else one for one in chosen)


COMMON = named("version help help-completion")
