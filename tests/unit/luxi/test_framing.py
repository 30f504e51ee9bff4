import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidRequest
from common.luxi.framing import Decoder, frame

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.lists(JSON, max_size=5), st.lists(st.integers(1, 40), max_size=20))
def test_messages_survive_any_cut(values: list[object], cuts: list[int]) -> None:
    texts = [json.dumps(value).encode() for value in values]
    stream = b"".join(frame(text) for text in texts)
    decoder, found = Decoder(), []
    for size in cuts:
        found += decoder.feed(stream[:size])
        stream = stream[size:]
    found += decoder.feed(stream)
    assert found == texts
    assert decoder.feed(frame(b"0")) == [b"0"]  # nothing was left over


def test_the_end_of_a_message_never_occurs_in_json() -> None:
    assert b"\x03" not in json.dumps("\x03").encode()


def test_a_message_too_large_is_refused_before_it_has_ended() -> None:
    decoder = Decoder(largest=10)
    assert decoder.feed(b"1234567890") == []
    with pytest.raises(InvalidRequest, match="10 bytes"):
        decoder.feed(b"1")
    with pytest.raises(InvalidRequest):
        Decoder(largest=3).feed(b"12\x0312345\x03")


def test_many_small_pieces_cost_no_copies_of_the_whole() -> None:
    decoder = Decoder()
    for _ in range(200_000):  # quadratic work would take minutes
        decoder.feed(b"x")
    (message,) = decoder.feed(b"\x03")
    assert len(message) == 200_000
