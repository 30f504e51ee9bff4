"""Whatever a job says can be stored."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import NodeFailure
from common.messages import to_json
from common.model.job import LogEntry
from coordinator.jobs.bounds import (
    ENTRIES,
    FIRST_ENTRIES,
    cut,
    failure_of,
    result_of,
    with_entry,
)
from tests.support.seeds import examples

_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,  # a hundred take three times as long; what is large has its own tests
)


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@settings(max_examples=examples(30))  # large ones, which take long to draw
@given(st.text(), st.dictionaries(st.from_regex(r"[a-z_]{1,8}x"), _ANYTHING))
def test_any_error_of_a_node_can_be_stored(message: str, detail: dict[str, Any]) -> None:
    failure = failure_of(NodeFailure(message, **detail))
    assert failure.code == "node-failure"
    assert len(to_json(failure)) < 2**21


@pytest.mark.parametrize(
    "value",
    ["x" * 2**24, "\udc80" * 9, 10**5000, float("nan"), _deep(5000), ["x" * 10_000] * 10_000],
    ids=["long", "no text", "large", "no number", "deep", "much"],
)
def test_an_absurd_detail_is_cut(value: Any) -> None:
    failure = failure_of(NodeFailure("No.", value=value))
    assert len(to_json(failure)) < 2**18


def test_an_ordinary_error_is_kept_as_it_is() -> None:
    detail = {"node": "alpha", "number": 7, "jobs": [1, 2], "offline": True}
    failure = failure_of(NodeFailure("The disk is full.", **detail))
    assert failure.message == "The disk is full."
    assert failure.detail == detail


def test_a_text_that_is_cut_says_so() -> None:
    assert cut("short", 5) == "short"
    assert cut("longer", 4) == "long… (2 more characters)"


def test_a_long_log_keeps_its_beginning_and_its_end_and_says_what_is_missing() -> None:
    log: tuple[LogEntry, ...] = ()
    for serial in range(1, 2001):
        log = with_entry(log, LogEntry(serial=serial, time=0.0, message=f"message {serial}"))
    assert len(log) == ENTRIES
    assert [entry.serial for entry in log[:FIRST_ENTRIES]] == list(range(1, FIRST_ENTRIES + 1))
    missing = 2000 - (ENTRIES - 1)
    assert log[FIRST_ENTRIES].message == f"({missing} messages are left out here)"
    assert log[FIRST_ENTRIES].serial == FIRST_ENTRIES + missing
    rest = range(FIRST_ENTRIES + missing + 1, 2001)
    assert [entry.serial for entry in log[FIRST_ENTRIES + 1 :]] == list(rest)


def test_a_result_is_kept_if_it_can_be_stored() -> None:
    assert result_of({"jobs": [[True, 7]]}, 1) == {"jobs": [[True, 7]]}
    assert "4096 KiB" in result_of("x" * 2**22, 1)
    assert "256 KiB" in result_of("x" * 2**18, 64)
    assert "levels deep" in result_of(_deep(150), 1)
