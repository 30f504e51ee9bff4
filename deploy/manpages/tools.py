"""The pages of the placement tools, made from their options."""

from importlib import import_module
from typing import NamedTuple

from common.version import VERSION
from coordinator.htools.catalogue import COMMON
from coordinator.htools.options import Option
from coordinator.htools.program import spelled
from deploy.manpages import roff


class Tool(NamedTuple):
    """What a page says that cannot be read off the options."""

    name: str
    description: list[str]
    arguments: str = ""
    status: dict[int, str] | None = None


_SOURCES = (
    "The cluster is read from one source: a text file (-t), a running master (-L), or whatever "
    "else the options below offer."
)

_REQUEST = (
    "Of what a request to an allocator (-I) tells, every instance counts once; Ganeti's tools "
    "count it twice."
)

TOOLS = {
    "hail": Tool(
        "choose nodes for instances, as an allocator of Gantry or Ganeti",
        [
            "Reads a request in Ganeti's iallocator protocol from a file, or with - from standard "
            "input, and prints the answer, a JSON object, in one line. Nodes and results are those "
            "of Ganeti's hail. Gantry itself places in the coordinator, by the same rules.",
        ],
        arguments="FILE",
        status={
            0: "The request was answered; whether it succeeded is in the answer.",
            1: "It cannot be read, or makes no sense.",
            2: "An option is unknown, or has or lacks a value.",
        },
    ),
    "hbal": Tool(
        "balance a group of nodes",
        [
            "Looks for moves of instances that leave the nodes of a group loaded alike, one after "
            "the other, and prints, saves or makes them. " + _SOURCES,
            "The best single move is made until none helps, as by Ganeti's hbal. Then pairs of "
            "moves are tried; the score may be worse between the two, but not after them. At last "
            "moves are left out whose instance moves again, where the rest fits without. The score "
            "is never worse than that of single moves. --strict-compat leaves it at those.",
            "With -X, jobs that share no node run side by side as a set, and a set waits for the "
            "one before. A job that fails ends it. SIGINT or SIGTERM ends it after the set under "
            "way, a second one at once; jobs then go on by themselves.",
            "--mond-data is only looked at with --mond=yes. With --mond-xen, agents are asked for "
            "what Xen tells of each instance, and not for the load of their nodes. " + _REQUEST,
        ],
        status={
            0: "It went well, or was ended by a signal after jobs that succeeded.",
            1: "The cluster cannot be read, or a job failed; standard error says which.",
            2: "An option is unknown, or has or lacks a value.",
        },
    ),
    "hcheck": Tool(
        "tell whether a cluster is healthy, and whether balancing it helps",
        [
            "Counts what is wrong in each group: nodes that fail N+1, nodes whose instances share "
            "an exclusion tag, instances on nodes that are offline, offline nodes, and nodes that "
            "could not be emptied, should they have to be. If anything is wrong, it tries what "
            "hbal would do, and counts again. It changes nothing. " + _SOURCES,
            "With --machine-readable it prints HCHECK_NAME=VALUE lines that a shell can read: "
            "GROUP_UUID_0 and so on; INIT_GROUP_0_N1_FAIL, CONFLICT_TAGS, OFFLINE_PRI, "
            "OFFLINE_SEC, GN1_FAIL and SCORE of each group; the same of the CLUSTER, with "
            "NEED_REBALANCE instead of a score; all of it with FINAL instead of INIT, after "
            "balancing; and OK=1 last.",
            "As with Ganeti's, OFFLINE_SEC counts nodes, and FINAL_CLUSTER_NEED_REBALANCE says "
            "whether the cluster needed it before. Where Ganeti's ends with an internal error, "
            "because an instance has its copy in another group, the node counts as one that "
            "cannot be emptied. " + _REQUEST,
        ],
        status={
            0: "All is well, or --no-simulation was given.",
            1: "Something is wrong; or the cluster cannot be read, which is said on standard "
            "error.",
            2: "An option is unknown, or has or lacks a value.",
        },
    ),
    "hinfo": Tool("describe a cluster", ["Prints how a cluster and its groups stand. " + _SOURCES]),
    "hroller": Tool(
        "plan in which rounds nodes can be rebooted",
        [
            "Prints groups of nodes, a line each, that can be rebooted together once their "
            "mirrored instances were failed over: no two of them mirror an instance between them, "
            "and no two need the same third node. Instances that are not mirrored need room "
            "elsewhere meanwhile; rounds are split until there is. Large rounds are first, the "
            "master is the last node of the last one. " + _SOURCES,
            "It only plans. --print-moves shows where instances can be during each round; after "
            "it they are thought to be back.",
            "Between the first and the last node that is chosen by --node-tags, --group or "
            "--skip-non-redundant, those that are not chosen have to find room for their "
            "instances as well, as with Ganeti's hroller. " + _REQUEST,
        ],
        status={
            0: "There is a plan.",
            1: "There is none: no room, no node, no master, or the cluster cannot be read.",
            2: "An option is unknown, or has or lacks a value.",
        },
    ),
    "hscan": Tool(
        "save what clusters report, and show how they stand",
        [
            "Asks each CLUSTER by its remote API, or the master of this one over its socket if "
            "none is named, and writes NAME.data, which the other tools read with -t; slashes in "
            "a name become underscores. A line each tells of nodes, instances, nodes that fail "
            "N+1 and their instances, memory (MiB), disk (GiB) and score.",
        ],
        arguments="[CLUSTER ...]",
        status={
            0: "All clusters were saved.",
            1: "The master of this one cannot be asked, or a file cannot be written.",
            2: "A named cluster cannot be read; or an option is unknown.",
        },
    ),
    "hspace": Tool(
        "tell how many more instances fit on a cluster",
        [
            "Places instances one after the other, each where hail would, until none fits: first "
            "in tiers, from the largest that the cluster's policy allows, which shrink by what "
            "stands most in the way (memory by 64 MiB, disk by 256 MiB, a processor, a spindle); "
            "then, from the start again, equal ones of the standard size. It changes nothing. "
            + _SOURCES,
            "What no node could be emptied after is not placed, unless --no-capacity-checks is "
            "given; of mirrored instances, as with Ganeti's, this is asked only before they "
            "shrink. Where some node fails N+1 already, nothing is placed at all, unless "
            "--independent-groups leaves its group out or --accept-existing-errors looks away.",
            "With --machine-readable it prints HTS_NAME=VALUE lines that a shell can read: "
            "CLUSTER_ what there is; INI_, TRL_ and FIN_ how the cluster stands at first, after "
            "the tiers and after the equal ones; TSPEC the tiers as memory,disk,cpus,spindles=n; "
            "KM_USED_, KM_POOL_ and KM_UNAV_ what is in use, what the tiers took, and what is "
            "out of their reach; ALLOC_ how many equal ones fit and why not more; and OK=1 last. "
            "It does so for clusters with reservations as well, for which Ganeti's gives up.",
            "-v prints on standard error where each instance would go, -p also the nodes.",
        ],
    ),
    "hsqueeze": Tool(
        "turn off nodes that are not needed, and on when they are",
        [
            "If some node has no room for --minimal-resources standard instances, it names nodes "
            "to turn on, out of those that are offline and have a tag that begins with "
            "htools:standby:. Else it names nodes to turn off: those with instances on shared "
            "storage only, as many as leave every node with room for --target-resources standard "
            "instances. " + _SOURCES,
            "-C lists the commands for that, moves of instances included; -X, with -L, has the "
            "master do it as jobs, of which one marks the nodes as offline or online and has "
            "their out-of-band program turn them off or on.",
        ],
    ),
}

_STATUS = {
    0: "It went well.",
    1: "The cluster cannot be read, or something could not be done; standard error says what.",
    2: "An option is unknown, or has or lacks a value.",
}


def tool_pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    return {f"{program}.1": _page(program, tool) for program, tool in TOOLS.items()}


def options_of(program: str) -> tuple[Option, ...]:
    """The options of a tool, those that all have last."""
    return (*import_module(f"coordinator.htools.{program}").OPTIONS, *COMMON)


def _page(program: str, tool: Tool) -> str:
    title = f'.TH {program.upper()} 1 "" "Gantry {VERSION}" "Gantry"\n.nh\n.ad l\n'
    words = [roff.bold(program), f"[{roff.italic('OPTION')} ...]", roff.escaped(tool.arguments)]
    status = ((roff.bold(str(code)), told) for code, told in (tool.status or _STATUS).items())
    others = ", ".join(f"{roff.bold(other)}(1)" for other in sorted(TOOLS.keys() - {program}))
    return (
        f"{title}.SH NAME\n{program} \\- {roff.escaped(tool.name)}\n"
        f".SH SYNOPSIS\n{' '.join(filter(None, words))}\n"
        f"{roff.section('DESCRIPTION', tool.description)}"
        f".SH OPTIONS\nLong names may be shortened as far as they remain clear.\n"
        f"{roff.items((_term(one), roff.sentence(one.help)) for one in options_of(program))}"
        f".SH EXIT STATUS\n{roff.items(status)}"
        f".SH SEE ALSO\n{others}, {roff.bold('gnt-instance')}(8)\n"
    )


def _term(option: Option) -> str:
    return ", ".join(filter(None, spelled(option, roff.bold, roff.italic)))
