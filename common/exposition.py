"""Figures as text that Prometheus reads; pure.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4), and
https://prometheus.io/docs/practices/naming/ for names.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from common.timings import Distribution

MEDIA = "text/plain; version=0.0.4; charset=utf-8"

_BOUND = "le"  # the label that a histogram's figures have besides
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n"})
_ESCAPES_IN_QUOTES = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class Kind(StrEnum):
    """How a figure behaves: it only grows, from zero at a start, or goes up and down.

    A histogram is several that grow: how often something took how long.
    """

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Family:
    """Figures of one name, which labels tell apart.

    Raises:
        ValueError: a name is none that Prometheus takes, or does not say that it is of a counter.
    """

    name: str
    kind: Kind
    doc: str
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.name, *self.labels):
            is_taken = name in self.labels and (name.startswith("__") or name == _BOUND)
            if not _NAME.fullmatch(name) or is_taken:
                raise ValueError(f"{name} is no name of a metric or label.")
        if self.name.endswith("_total") is not (self.kind is Kind.COUNTER):
            raise ValueError(f"{self.name}: names of counters, and no others, end in _total.")


Figures = tuple[Family, Mapping[tuple[str, ...], float | Distribution]]
"""What a family has now, by the values of its labels; nothing occurs twice."""


def single(family: Family, value: float | Distribution | None) -> Figures:
    """Return a family without labels; None if its value is not known."""
    return family, {} if value is None else {(): value}


def exposition(figures: Iterable[Figures]) -> bytes:
    """Return the text, with the families in their order.

    Raises:
        ValueError: a family occurs twice, or figures are of another form than it.
    """
    lines: list[str] = []
    seen: set[str] = set()
    for family, values in figures:
        if family.name in seen:
            raise ValueError(f"{family.name} occurs twice.")
        seen.add(family.name)
        lines.append(f"# HELP {family.name} {family.doc.translate(_ESCAPES)}\n")
        lines.append(f"# TYPE {family.name} {family.kind}\n")
        for labels in sorted(values):
            lines += _lines(family, labels, values[labels])
    return "".join(lines).encode("utf-8", "replace")


def _lines(family: Family, labels: tuple[str, ...], value: float | Distribution) -> Iterator[str]:
    shown = _shown(family.labels, labels)
    if isinstance(value, Distribution) is not (family.kind is Kind.HISTOGRAM):
        raise ValueError(f"{family.name}: values of histograms, and no others, are distributions.")
    if not isinstance(value, Distribution):
        yield f"{family.name}{shown} {_number(value)}\n"
        return
    count = 0
    for bound, count in value.up_to():
        within = _shown((*family.labels, _BOUND), (*labels, _number(bound)))
        yield f"{family.name}_bucket{within} {count}\n"
    yield f"{family.name}_sum{shown} {_number(value.total_s)}\n"
    yield f"{family.name}_count{shown} {count}\n"


def _shown(names: tuple[str, ...], values: tuple[str, ...]) -> str:
    pairs = [
        f'{name}="{value.translate(_ESCAPES_IN_QUOTES)}"'
        for name, value in zip(names, values, strict=True)
    ]
    return f"{{{','.join(pairs)}}}" if pairs else ""


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(+value)  # a bool becomes a number
