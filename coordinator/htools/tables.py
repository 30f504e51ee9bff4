"""Tables of nodes, instances and scores, as Ganeti's tools print them."""

import math
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

import numpy as np

from common.record import Record
from coordinator.allocator.model.resources import NodeResources
from coordinator.allocator.model.terms import WEIGHTS, Term
from coordinator.allocator.snapshot import IS_RUNNING, NOWHERE, Instance, Snapshot

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


class NodesNow(Record):
    """Nodes at one moment; lists of instance indices, newest first.

    Attributes:
        indices: of the nodes in the whole cluster.
        used_memory: by instances.
        peers: primary nodes and the memory that is kept free for them.
        suffix: of names, that is not shown.
    """

    snapshot: Snapshot
    resources: NodeResources
    indices: Sequence[int]
    primaries: Sequence[Sequence[int]]
    secondaries: Sequence[Sequence[int]]
    used_memory: Sequence[int]
    missing: Sequence[int]
    tags: Sequence[Sequence[tuple[str, int]]]
    peers: Sequence[Sequence[tuple[int, int]]]
    suffix: str


def node_table(now: NodesNow, wanted: str) -> str:
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
    rows += [[field(now, node) for _, _, field in columns] for node in range(len(now.indices))]
    return aligned(rows, [right for _, right, _ in columns])


_Column = tuple[str, bool, Callable[[NodesNow, int], str]]
_UNKNOWN: _Column = ("<unknown field>", False, lambda _now, _node: "<unknown field>")


def _status(now: NodesNow, node: int) -> str:
    return "-" if now.resources.offline[node] else "*" if now.resources.fails_n1[node] else " "


def _ratio(
    value: Callable[[NodeResources, int], float], digits: int
) -> Callable[[NodesNow, int], str]:
    def read(now: NodesNow, node: int) -> str:
        with np.errstate(divide="ignore", invalid="ignore"):
            return show(value(now.resources, node), digits)

    return read


def _load(kind: int) -> Callable[[NodesNow, int], str]:
    return lambda now, node: f"{show(now.resources.load[kind][node], 3):>5}"


def _share(resources: NodeResources, node: int) -> float:
    unit = float(resources.disk_unit[node])
    free = resources.free_spindles if resources.exclusive[node] else resources.disk
    return float(free[node]) / unit if unit else 1.0


_NODE_FIELDS: dict[str, _Column] = {
    "status": ("F", False, _status),
    "idx": ("Index", True, lambda now, node: str(now.indices[node])),
    "name": ("Name", False, lambda now, n: now.snapshot.nodes[n].name.removesuffix(now.suffix)),
    "fqdn": ("Name", False, lambda now, node: now.snapshot.nodes[node].name),
    "tmem": ("t_mem", True, lambda now, n: f"{now.snapshot.nodes[n].total_memory:5.0f}"),
    "nmem": ("n_mem", True, lambda now, n: f"{now.snapshot.nodes[n].own_memory:5d}"),
    "imem": ("i_mem", True, lambda now, node: f"{now.used_memory[node]:5d}"),
    "xmem": ("x_mem", True, lambda now, node: f"{now.missing[node]:5d}"),
    "fmem": ("f_mem", True, lambda now, n: f"{now.snapshot.nodes[n].free_memory:5d}"),
    "umem": ("u_mem", True, lambda now, n: f"{int(now.resources.memory[n]):5d}"),
    "rmem": ("r_mem", True, lambda now, n: f"{int(now.resources.reserved[n]):5d}"),
    "amem": (
        "a_mem",
        True,
        lambda now, n: f"{max(0, int(now.resources.memory[n] - now.resources.reserved[n])):5d}",
    ),
    "tdsk": ("t_dsk", True, lambda now, n: f"{now.snapshot.nodes[n].total_disk / 1024:5.0f}"),
    "fdsk": ("f_dsk", True, lambda now, n: f"{int(now.resources.disk[n]) // 1024:5d}"),
    "tcpu": ("pcpu", True, lambda now, n: f"{now.snapshot.nodes[n].total_cpus:4.0f}"),
    "ucpu": ("vcpu", True, lambda now, n: f"{int(now.resources.cpus[n]):4d}"),
    "pcnt": ("pcnt", True, lambda now, n: f"{int(now.resources.primaries[n]):3d}"),
    "scnt": ("scnt", True, lambda now, n: f"{int(now.resources.secondaries[n]):3d}"),
    "plist": ("primaries", True, lambda now, n: _listed(now.primaries[n])),
    "slist": ("secondaries", True, lambda now, n: _listed(now.secondaries[n])),
    "pfmem": (
        "p_fmem", True, _ratio(lambda b, n: b.memory[n] / b.total_memory[n], 4)
    ),
    "pfdsk": ("p_fdsk", True, _ratio(_share, 4)),
    "rcpu": ("r_cpu", True, _ratio(lambda b, n: b.cpus[n] / b.total_cpus[n], 2)),
    "cload": ("lCpu", True, _load(0)),
    "mload": ("lMem", True, _load(1)),
    "dload": ("lDsk", True, _load(2)),
    "nload": ("lNet", True, _load(3)),
    "ptags": (
        "PrimaryTags",
        False,
        lambda now, n: ",".join(f"{tag}={count}" for tag, count in now.tags[n]),
    ),
    "peermap": (
        "PeerMap",
        False,
        lambda now, n: "[" + ",".join(f"({peer},{held})" for peer, held in now.peers[n]) + "]",
    ),
    "spindle_count": ("NodeSpindles", True, lambda now, n: str(now.snapshot.nodes[n].spindles)),
    "hi_spindles": ("MaxSpindles", True, lambda now, n: str(float(now.resources.spindle_limit[n]))),
    "inst_spindles": ("InstSpindles", True, lambda now, n: str(float(now.resources.spindles[n]))),
}  # fmt: skip


def _listed(numbers: Sequence[int]) -> str:
    return "[" + ",".join(map(str, numbers)) + "]"


def instance_table(instances: Sequence[Instance], cluster: Snapshot) -> str:
    """The table that ``--print-instances`` prints; with full names."""
    header = ["F", "Name", "Pri_node", "Sec_node", "Auto_bal", "vcpu", "mem", "dsk"]
    rows = [[*header, "lCpu", "lMem", "lDsk", "lNet"]]
    for one in instances:
        secondary = one.secondary
        flag = "R" if one.status in IS_RUNNING else " "
        rows.append(
            [
                flag,
                one.name,
                cluster.nodes[one.primary].name,
                "" if secondary == NOWHERE else cluster.nodes[secondary].name,
                "Y" if one.auto_balance else "N",
                f"{one.vcpus:3d}",
                f"{one.memory:5d}",
                f"{one.disk // 1024:5d}",
                *(f"{show(load, 3):>5}" for load in one.load),
            ]
        )
    return aligned(rows, (False, False, False, False, False, *[True] * 7))
