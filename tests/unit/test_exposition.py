"""The text for Prometheus says what it is to say, whatever is in it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.exposition import Family, Kind, exposition, single
from common.timings import Distribution, Timings

DISKS = Family("gantry_disks", Kind.GAUGE, "Disks.", ("name", "kind"))
# Names of labels, and values with nothing that would end them early.
_PAIR = re.compile(r'(\w+)="((?:[^"\\\n]|\\[\\n"])*)"')


def test_a_family_is_described_once_before_all_that_it_has() -> None:
    asked = Family("gantry_asked_total", Kind.COUNTER, "Asked\nfor \\ nothing.")
    text = exposition([(DISKS, {("b", "x"): 2, ("a", "x"): 0.5}), single(asked, 7)])
    assert text.decode() == (
        "# HELP gantry_disks Disks.\n"
        "# TYPE gantry_disks gauge\n"
        'gantry_disks{name="a",kind="x"} 0.5\n'
        'gantry_disks{name="b",kind="x"} 2\n'
        "# HELP gantry_asked_total Asked\\nfor \\\\ nothing.\n"
        "# TYPE gantry_asked_total counter\n"
        "gantry_asked_total 7\n"
    )


def test_what_is_not_known_has_no_figure() -> None:
    assert b"\ngantry_x " not in exposition([single(Family("gantry_x", Kind.GAUGE, "X."), None)])


@given(st.text(), st.text(), st.floats())
def test_no_label_can_forge_another_figure(first: str, second: str, value: float) -> None:
    text = exposition([(DISKS, {(first, second): value})]).decode()
    *_, line = text.removesuffix("\n").split("\n")
    assert text.count("\n") == 3
    name, _, rest = line.partition("{")
    labels, _, number = rest.rpartition("} ")
    pairs = _PAIR.findall(labels)
    assert name == "gantry_disks"
    assert ",".join(f'{key}="{each}"' for key, each in pairs) == labels

    def read(escaped: str) -> str:
        return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), escaped)

    told = {key: read(each) for key, each in pairs}
    assert told == {
        "name": first.encode("utf-8", "replace").decode(),
        "kind": second.encode("utf-8", "replace").decode(),
    }
    assert float(number) == value or value != value


def test_infinity_is_written_as_prometheus_reads_it() -> None:
    gauge = Family("gantry_x", Kind.GAUGE, "X.")
    assert b"gantry_x +Inf\n" in exposition([single(gauge, float("inf"))])
    assert b"gantry_x -Inf\n" in exposition([single(gauge, float("-inf"))])
    assert b"gantry_x NaN\n" in exposition([single(gauge, float("nan"))])


@pytest.mark.parametrize(
    ("name", "kind", "labels"),
    [
        ("1st", Kind.GAUGE, ()),
        ("a b", Kind.GAUGE, ()),
        ("grows", Kind.COUNTER, ()),
        ("sum_total", Kind.GAUGE, ()),
        ("fine", Kind.GAUGE, ("with-dash",)),
        ("fine", Kind.GAUGE, ("__own",)),
    ],
)
def test_names_that_prometheus_would_refuse_are_refused(
    name: str, kind: Kind, labels: tuple[str, ...]
) -> None:
    with pytest.raises(ValueError, match="name"):
        Family(name, kind, "…", labels)


def test_nothing_is_told_twice_or_without_its_labels() -> None:
    with pytest.raises(ValueError, match="twice"):
        exposition([(DISKS, {}), (DISKS, {})])
    with pytest.raises(ValueError, match="shorter"):
        exposition([(DISKS, {("a",): 1})])


def test_a_histogram_counts_what_took_so_long_at_most() -> None:
    timings = Timings()
    for length_s in (0.0, 0.001, 0.002, 5.0, 1000.0):
        timings.note(length_s)
    took = Family("gantry_took_seconds", Kind.HISTOGRAM, "Took.", ("what",))
    text = exposition([(took, {("x",): timings.so_far()})]).decode()
    assert text.startswith(
        "# HELP gantry_took_seconds Took.\n# TYPE gantry_took_seconds histogram\n"
    )
    for line in (
        'gantry_took_seconds_bucket{what="x",le="0.001"} 2',
        'gantry_took_seconds_bucket{what="x",le="0.003"} 3',
        'gantry_took_seconds_bucket{what="x",le="3.0"} 3',
        'gantry_took_seconds_bucket{what="x",le="10.0"} 4',
        'gantry_took_seconds_bucket{what="x",le="300.0"} 4',
        'gantry_took_seconds_bucket{what="x",le="+Inf"} 5',
        'gantry_took_seconds_sum{what="x"} 1005.003',
        'gantry_took_seconds_count{what="x"} 5',
    ):
        assert f"{line}\n" in text


def test_a_histogram_is_nothing_else_and_nothing_else_is_one() -> None:
    took = Family("gantry_took_seconds", Kind.HISTOGRAM, "Took.")
    for family, value in ((took, 1.0), (Family("gantry_x", Kind.GAUGE, "X."), Distribution())):
        with pytest.raises(ValueError, match="histograms"):
            exposition([single(family, value)])
