"""What scripts say is kept in their logs: without secrets, and not without bounds."""

import io
import os
from pathlib import Path

import pytest

from noded.operating_systems.masking import HIDDEN, Mask
from noded.operating_systems.output import PIECE, keep


def kept(tmp_path: Path, said: bytes, *secrets: str, most: int = 1 << 20) -> bytes:
    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    keep(io.BytesIO(said), log, Mask(secrets), most=most)
    os.close(log)
    return (tmp_path / "log").read_bytes()


def test_all_of_it_is_kept_up_to_a_bound_and_then_it_is_said_that_there_was_more(
    tmp_path: Path,
) -> None:
    said = b"a line\n" * 100 + b"and no end of it"
    assert kept(tmp_path, said) == said
    assert kept(tmp_path, b"x" * 20 + b"\n" + said, most=10) == (
        b"x" * 20 + b"\n\nIt says more, which is not kept.\n"
    )


def test_a_line_without_an_end_is_never_held_as_a_whole(tmp_path: Path) -> None:
    class Endless(io.BytesIO):
        left = 64

        def readline(self, size: int | None = -1, /) -> bytes:
            assert size == PIECE
            self.left -= 1
            return b"x" * PIECE if self.left else b""

    log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
    keep(Endless(), log, Mask(()), most=3 * PIECE)
    os.close(log)
    assert (tmp_path / "log").stat().st_size < 5 * PIECE


@pytest.mark.parametrize("before", range(PIECE - 12, PIECE + 2))
def test_a_secret_is_hidden_wherever_a_long_line_is_cut(tmp_path: Path, before: int) -> None:
    text = b"x" * before + b"open sesame" + b"y" * PIECE + b"open"
    hidden = b"x" * before + HIDDEN + b"y" * PIECE + b"open"
    assert kept(tmp_path, text, "open sesame", "sesame") == hidden


def test_a_secret_at_the_very_end_is_hidden(tmp_path: Path) -> None:
    assert kept(tmp_path, b"it is open sesame", "open sesame", "sesame") == b"it is " + HIDDEN


def test_the_longer_secret_is_hidden_where_both_begin(tmp_path: Path) -> None:
    assert kept(tmp_path, b"letmein", "letm", "letmein", "x") == HIDDEN
