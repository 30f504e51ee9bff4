"""Patterns of strangers: found in time that grows with the text, or refused with a reason."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.pattern import LONGEST_PATTERN, compile_pattern
from coordinator.queries.text import glob_pattern

LONG = "a" * 3_000


@pytest.mark.parametrize(
    "pattern", ["(a+)+$b", "(a*)*b", "(a|aa)+c", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*a){25}b"]
)
def test_no_pattern_tries_one_way_after_the_other(pattern: str) -> None:
    """With ``re``, none of these would come to an end within this world's."""
    assert not compile_pattern(pattern)(LONG)


@pytest.mark.parametrize("pattern", ["(a?){500}a{500}b", "a.{400}a.{400}!", "[ab]*a[ab]{900}x"])
def test_patterns_that_need_more_memory_than_they_get_are_still_found(pattern: str) -> None:
    """They need more states than the memory holds; the search goes on without keeping any."""
    is_found = compile_pattern(pattern)
    assert not is_found(LONG)
    assert is_found(LONG + "bx!")


@pytest.mark.parametrize(
    "pattern",
    [
        "(", "[", "*", "(?<=a)b", "(?!a)b", r"(a)\1", r"a\Z", "(?x)a", "a{2000}",
        r"(((a{9}){9}){9}){9}", r"\pL{999}" * 30, "\udcff", "x" * (LONGEST_PATTERN + 1),
    ],
)  # fmt: skip
def test_what_cannot_be_found_so_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidRequest):
        compile_pattern(pattern)


def test_a_refusal_names_the_pattern_and_what_is_wrong_with_it() -> None:
    with pytest.raises(InvalidRequest, match=r"“\(\?<=web\)1” .*\(\?<=.*look-around"):
        compile_pattern("(?<=web)1")


def test_text_that_is_no_unicode_is_text_without_a_match_not_an_error() -> None:
    assert compile_pattern("^web.1$")("web\udcff1")
    assert not compile_pattern("ü")("\udcff")


def test_a_range_that_runs_backwards_stands_for_nothing() -> None:
    assert not compile_pattern(glob_pattern("web[9-0]"))("web5")
    assert compile_pattern(glob_pattern("web[9-05]"))("web5")
    assert compile_pattern(glob_pattern("web[!9-0]"))("web5")


@given(st.text("ab.*?[]!-^\\ é\n\0{$", max_size=8), st.text("ab.-^\\ é{$", max_size=8))
def test_globs_mean_what_they_mean_to_re(glob: str, name: str) -> None:
    pattern = glob_pattern(glob)
    assert compile_pattern(pattern)(name) == (re.search(pattern, name) is not None)
