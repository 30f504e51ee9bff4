from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from coordinator.queries.field import Field, Kind, Missing, table
from coordinator.queries.filter import (
    DEEPEST,
    MOST_PATTERNS,
    compile_filter,
    fields_of,
    names_asked,
)

Row = dict[str, Any]


def column(name: str, kind: Kind) -> Field[Row]:
    return Field(name, name, kind, "", lambda row: row.get(name, Missing.UNAVAILABLE))


FIELDS = table((
    column("name", Kind.TEXT), column("ram", Kind.UNIT), column("up", Kind.BOOL),
    column("tags", Kind.OTHER), column("start", Kind.OTHER),
))  # fmt: skip
WEB: Row = {"name": "web1", "ram": 512, "up": True, "tags": ["a", "b"], "start": [100, 500000]}
SILENT: Row = {"name": "db1", "ram": Missing.NO_DATA, "up": Missing.OFFLINE}


def fits(condition: Any, row: Row = WEB) -> bool | None:
    return compile_filter(condition, FIELDS)(row)


@pytest.mark.parametrize(
    ("condition", "truth"),
    [
        (None, True),
        (["==", "name", "web1"], True),
        (["=", "name", "web1"], True),
        (["!=", "name", "web1"], False),
        (["<", "ram", 1024], True),
        ([">", "ram", 512], False),
        (["<=", "ram", "512"], True),
        ([">=", "ram", 512.5], False),
        (["=~", "name", "^w.b"], True),
        (["=~", "name", "B"], False),
        (["=~", "ram", "5"], False),
        (["=[]", "tags", "a"], True),
        (["=[]", "tags", "c"], False),
        (["=[]", "name", "w"], False),
        (["?", "up"], True),
        (["==", "up", "yes"], True),
        (["==", "up", False], False),
        (["!", ["?", "up"]], False),
        (["&"], True),
        (["|"], False),
        (["&", ["?", "up"], ["==", "name", "x"]], False),
        (["|", ["?", "up"], ["==", "name", "x"]], True),
        ([">", "start", 100], True),
        (["<", "start", 100.6], True),
        (["<", "tags", 3], False),
    ],
)
def test_operators(condition: Any, truth: bool) -> None:
    assert fits(condition) is truth


def test_what_is_unknown_is_neither_true_nor_false() -> None:
    silent = ["<", "ram", 10]
    assert fits(silent, SILENT) is None
    assert fits(["!", silent], SILENT) is None
    assert fits(["&", silent, ["==", "name", "db1"]], SILENT) is None
    assert fits(["&", silent, ["==", "name", "x"]], SILENT) is False
    assert fits(["|", silent, ["==", "name", "db1"]], SILENT) is True
    assert fits(["|", silent, ["?", "up"]], SILENT) is None


def test_what_an_object_lacks_equals_nothing() -> None:
    lacking: Row = {"name": "x"}
    for condition in (["==", "ram", 1], ["<", "ram", 1], ["?", "ram"], ["=~", "tags", "."]):
        assert fits(condition, lacking) is False
    assert fits(["!=", "ram", 1], lacking) is True


@pytest.mark.parametrize(
    "condition",
    [
        "name", 5, {}, [], ["=="], ["==", "name"], ["==", "nope", 1], ["~", "name", "x"],
        ["==", "ram", "big"], ["==", "ram", []], ["==", "name", 5], ["==", "up", "perhaps"],
        ["=~", "name", "("], ["=~", "name", "x" * 5000], ["!", ["?", "up"], ["?", "up"]],
        ["&", None, 3], [["==", "name", "x"]],
    ],
)  # fmt: skip
def test_a_malformed_filter_is_refused(condition: Any) -> None:
    with pytest.raises(InvalidRequest):
        fits(condition)


def test_a_filter_too_deep_is_refused() -> None:
    condition: Any = ["?", "up"]
    for _ in range(DEEPEST + 1):
        condition = ["!", condition]
    with pytest.raises(InvalidRequest, match="levels"):
        fits(condition)


def test_a_filter_of_too_many_patterns_is_refused() -> None:
    one = ["=~", "name", "w"]
    assert fits(["&", *[["!", ["|", one]]] * MOST_PATTERNS]) is False
    with pytest.raises(InvalidRequest, match="patterns"):
        fits(["&", *[["!", ["|", one]]] * MOST_PATTERNS, one])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(list(FIELDS)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(
            st.sampled_from(["|", "&", "!", "?", "==", "<", "=~", "=[]"]),
            inner | st.sampled_from(list(FIELDS)),
            inner,
        ).map(list)
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_a_filter_or_is_refused(condition: Any) -> None:
    try:
        test = compile_filter(condition, FIELDS)
    except InvalidRequest:
        return
    assert test(WEB) in (True, False, None)
    assert test(SILENT) in (True, False, None)
    assert set(fields_of(condition)) <= FIELDS.keys()


def test_names_are_recognised() -> None:
    assert names_asked(["==", "name", "a"], "name") == ["a"]
    assert names_asked(["|", ["==", "name", "a"], ["=", "name", "b"]], "name") == ["a", "b"]
    assert names_asked(["|", ["==", "name", "a"], ["?", "up"]], "name") is None
    assert names_asked(["|"], "name") is None
    assert names_asked(["&", ["==", "name", "a"]], "name") is None
    assert names_asked(None, "name") is None
