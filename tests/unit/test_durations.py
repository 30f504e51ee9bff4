import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.durations import parse_duration
from common.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("30m", 1800), ("1h", 3600), (" 4 H ", 14_400), ("1.5d", 129_600),
     ("2w", 1_209_600), ("0.5m", 30)],
)  # fmt: skip
def test_spans_of_time_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "h", "1y", "-1h", "1h30m", "1,5h", "1e9", "inf", "nan", "0", "0h", "9" * 400, "٣h",
             "5300w", "soon"],
)  # fmt: skip
def test_what_is_no_span_of_time_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^“.*” is .*\.$"):
        parse_duration(text)


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert parse_duration(text) > 0
    except InvalidRequest as error:
        assert error.message.endswith(".")  # noqa: PT017 -- either outcome is fine
