"""Bodies that come in chunks are put together whatever pieces they come in, and are bounded."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.chunked import MOST_CHUNKS, Chunks, is_in_chunks, with_length

MOST = 1000
AFTER = b"GET / HTTP/1.1\r\n\r\n"


def in_chunks(*parts: bytes, trailer: bytes = b"") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b"")).replace(
        b"0\r\n\r\n", b"0\r\n" + trailer + b"\r\n"
    )


@given(
    parts=st.lists(st.binary(min_size=1, max_size=40).filter(lambda part: b"0\r\n" not in part)),
    cuts=st.lists(st.integers(0, 400), max_size=6),
)
def test_a_body_is_found_whatever_pieces_it_comes_in(parts: list[bytes], cuts: list[int]) -> None:
    data = in_chunks(*parts) + AFTER
    edges = sorted({0, *(min(cut, len(data)) for cut in cuts), len(data)})
    chunks, left = Chunks(10_000), b""
    body: bytes | None = None
    for start, end in itertools.pairwise(edges):
        if body is None:
            body, left = chunks.feed(data[start:end])
        else:
            left += data[start:end]
    assert body == b"".join(parts)
    assert left == AFTER


def test_extensions_and_trailers_are_read_over() -> None:
    data = b'3;a="b"\r\nabc\r\nA \r\n0123456789\r\n0\r\nX: y\r\nZ: y\r\n\r\nrest'
    assert Chunks(MOST).feed(data) == (b"abc0123456789", b"rest")


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n", b"-1\r\n", b"0x3\r\nabc\r\n", b"3\r\nabcd\r\n", b"3\r\nabc\n0\r\n\r\n", b"3\nabc",
        b"fffffffff\r\n", b"3e9\r\n", b"zz\r\n", b" 3\r\nabc", b"3" + b" " * 300, b"+3\r\nabc",
        in_chunks(b"a" * 600, b"b" * 600), b"1\r\na\r\n" * (MOST + 1),
        b"0\r\n" + b"x" * 300, b"1_0\r\n",
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_such_body_or_too_long_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="chunk"):
        Chunks(MOST).feed(data)


def test_pieces_are_counted_however_short_they_are() -> None:
    Chunks(1 << 20).feed(b"1\r\na\r\n" * MOST_CHUNKS)
    with pytest.raises(ValueError, match="too long"):
        Chunks(1 << 20).feed(b"1\r\na\r\n" * (MOST_CHUNKS + 1))


def test_trailers_are_counted_like_pieces() -> None:
    with pytest.raises(ValueError, match="too long"):
        Chunks(1 << 20).feed(b"0\r\n" + b"a\r\n" * MOST_CHUNKS + b"\r\n")


def test_only_chunks_alone_are_known_and_their_head_is_told_the_length() -> None:
    head = b"PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n"
    assert is_in_chunks(head)
    told = b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\nX: y\r\n\r\n"
    assert with_length(head, 7) == told
    for other in (b"gzip, chunked", b"chunked, chunked", b"identity", b"xchunked", b"chunkedx"):
        assert not is_in_chunks(head.replace(b"chunked", other))
    assert not is_in_chunks(head.replace(b"X: y", b"Transfer-Encoding: gzip"))
