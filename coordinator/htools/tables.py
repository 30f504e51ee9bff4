"""Tables of nodes, instances and scores, as Ganeti's tools print them."""

import math
from collections.abc import Callable, Iterable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

from common.record import Record
from coordinator.allocator.arithmetic import ratio
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.terms import WEIGHTS, Term
from coordinator.allocator.snapshot import IS_RUNNING, Instance, Node, Snapshot

_PRECISE = Context(prec=400)  # the largest float has 309 digits before the point

NODE_FIELDS = (
    "status", "name", "tmem", "nmem", "imem", "xmem", "fmem", "umem", "rmem", "tdsk", "fdsk",
    "tcpu", "ucpu", "pcnt", "scnt", "pfmem", "pfdsk", "rcpu", "cload", "mload", "dload", "nload",
)  # fmt: skip


def aligned(rows: Sequence[Sequence[str]], numeric: Sequence[bool], prefix: str = "") -> str:
    """Columns padded to their widest field, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = zip(row, widths, numeric, strict=True)
        text = " ".join(f"{cell:>{w}}" if right else f"{cell:<{w}}" for cell, w, right in cells)
        lines.append(f"{prefix} {text}")
    return "\n".join(lines)


def score_table(values: Sequence[float]) -> str:
    """Each term, what it amounts to and what it weighs."""
    rows = [["Field", "Value", "Weight"]]
    for term, value, weight in zip(Term, values, WEIGHTS, strict=False):
        rows.append([term.name.lower(), show(value), f"x{weight:.2f}"])
    return aligned(rows, (False, True, True), "  ")


def show(value: float, digits: int = 8) -> str:
    """A float as Haskell's printf shows it with ``%.8f``.

    It rounds the shortest decimal that reads back as the same float, halves to even, where C
    rounds the float itself: 0.46175 becomes 0.4618, though it is a little less.
    """
    if not math.isfinite(value):
        return f"{value}".replace("nan", "NaN").replace("inf", "Infinity")
    exact = Decimal(repr(float(value)))
    return f"{exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN, _PRECISE):f}"


def show_g(value: float) -> str:
    """A float as Haskell's printf shows it with ``%.6g``: six digits after the point, always."""
    if value == 0 or 0.1 <= abs(value) < 1e7:
        return show(value, 6)
    mantissa, _, exponent = f"{value:.6e}".partition("e")
    return f"{mantissa}e{int(exponent)}"


def show_float(value: float) -> str:
    """A float as Haskell's ``show`` writes it: the shortest that reads back as the same float."""
    if not math.isfinite(value):
        return show(value)
    if value == 0 or 0.1 <= abs(value) < 1e7:
        return repr(float(value))
    digits, _, exponent = f"{Decimal(repr(float(value))):e}".partition("e")
    whole, _, rest = digits.partition(".")
    return f"{whole}.{rest.rstrip('0') or '0'}e{int(exponent)}"


class NodeNow(Record):
    """A node at one moment; lists of instance indices, newest first.

    Attributes:
        index: in the whole cluster.
        alias: its name without what all names end in.
        has: its row of resources.
        used_memory: by instances.
        missing: memory that nobody accounts for.
        tags: that exclude others with the same, and how many primaries have each.
        peers: primary nodes and the memory that is kept free for them.
    """

    node: Node
    index: int
    alias: str
    has: NodeResources
    used_memory: int
    missing: int
    primaries: Sequence[int]
    secondaries: Sequence[int]
    tags: Sequence[tuple[str, int]]
    peers: Sequence[tuple[int, int]]


def node_table(nodes: Sequence[NodeNow], wanted: str) -> str:
    """The table that ``-p`` prints.

    The fields that are wanted are separated by commas; ``+`` in front adds them to the usual ones.
    """
    names: tuple[str, ...] = NODE_FIELDS
    if wanted.startswith("+"):
        names += tuple(wanted[1:].split(","))
    elif wanted:
        names = tuple(wanted.split(","))
    columns = [_NODE_FIELDS.get(name, _UNKNOWN) for name in names]
    rows = [[title for title, _, _ in columns]]
    rows += [[field(node) for _, _, field in columns] for node in nodes]
    return aligned(rows, [right for _, right, _ in columns])


_Column = tuple[str, bool, Callable[[NodeNow], str]]
_UNKNOWN: _Column = ("<unknown field>", False, lambda _: "<unknown field>")


def _status(now: NodeNow) -> str:
    return "-" if now.has.offline else "*" if now.has.fails_n1 else " "


def _free_share(has: NodeResources) -> float:
    """Of disk space, or of spindles if these are what counts."""
    free = has.free_spindles if has.exclusive else has.disk
    return float(free / has.disk_unit) if has.disk_unit else 1.0


def _load(kind: int) -> Callable[[NodeNow], str]:
    return lambda n: f"{show(n.has.load[kind], 3):>5}"


_NODE_FIELDS: dict[str, _Column] = {
    "status": ("F", False, _status),
    "idx": ("Index", True, lambda n: str(n.index)),
    "name": ("Name", False, lambda n: n.alias),
    "fqdn": ("Name", False, lambda n: n.node.name),
    "tmem": ("t_mem", True, lambda n: f"{n.node.total_memory:5.0f}"),
    "nmem": ("n_mem", True, lambda n: f"{n.node.own_memory:5d}"),
    "imem": ("i_mem", True, lambda n: f"{n.used_memory:5d}"),
    "xmem": ("x_mem", True, lambda n: f"{n.missing:5d}"),
    "fmem": ("f_mem", True, lambda n: f"{n.node.free_memory:5d}"),
    "umem": ("u_mem", True, lambda n: f"{n.has.memory:5d}"),
    "rmem": ("r_mem", True, lambda n: f"{n.has.reserved:5d}"),
    "amem": ("a_mem", True, lambda n: f"{max(0, n.has.memory - n.has.reserved):5d}"),
    "tdsk": ("t_dsk", True, lambda n: f"{n.node.total_disk / 1024:5.0f}"),
    "fdsk": ("f_dsk", True, lambda n: f"{n.has.disk // 1024:5d}"),
    "tcpu": ("pcpu", True, lambda n: f"{n.node.total_cpus:4.0f}"),
    "ucpu": ("vcpu", True, lambda n: f"{n.has.cpus:4d}"),
    "pcnt": ("pcnt", True, lambda n: f"{n.has.primaries:3d}"),
    "scnt": ("scnt", True, lambda n: f"{n.has.secondaries:3d}"),
    "plist": ("primaries", True, lambda n: listed(n.primaries)),
    "slist": ("secondaries", True, lambda n: listed(n.secondaries)),
    "pfmem": ("p_fmem", True, lambda n: show(ratio(n.has.memory, n.has.total_memory), 4)),
    "pfdsk": ("p_fdsk", True, lambda n: show(_free_share(n.has), 4)),
    "rcpu": ("r_cpu", True, lambda n: show(ratio(n.has.cpus, n.has.total_cpus), 2)),
    "cload": ("lCpu", True, _load(0)),
    "mload": ("lMem", True, _load(1)),
    "dload": ("lDsk", True, _load(2)),
    "nload": ("lNet", True, _load(3)),
    "ptags": ("PrimaryTags", False, lambda n: ",".join(f"{tag}={i}" for tag, i in n.tags)),
    "peermap": ("PeerMap", False, lambda n: listed([f"({i},{held})" for i, held in n.peers])),
    "spindle_count": ("NodeSpindles", True, lambda n: str(n.node.spindles)),
    "hi_spindles": ("MaxSpindles", True, lambda n: str(float(n.has.spindle_limit))),
    "inst_spindles": ("InstSpindles", True, lambda n: str(float(n.has.spindles))),
}


def listed(numbers: Iterable[object]) -> str:
    """As Haskell shows a list of numbers."""
    return "[" + ",".join(map(str, numbers)) + "]"


def instance_table(instances: Sequence[Instance], cluster: Snapshot) -> str:
    """The table that ``--print-instances`` prints; with full names."""
    header = ["F", "Name", "Pri_node", "Sec_node", "Auto_bal", "vcpu", "mem", "dsk"]
    rows = [[*header, "lCpu", "lMem", "lDsk", "lNet"]]
    for one in instances:
        primary, secondary, *_ = *(cluster.nodes[home].name for home in one.homes), ""
        flags = "R" if one.status in IS_RUNNING else " ", "Y" if one.auto_balance else "N"
        sizes = (f"{one.vcpus:3d}", f"{one.memory:5d}", f"{one.disk // 1024:5d}")
        loads = (f"{show(load, 3):>5}" for load in one.load)
        rows.append([flags[0], one.name, primary, secondary, flags[1], *sizes, *loads])
    return aligned(rows, (False, False, False, False, False, *[True] * 7))
