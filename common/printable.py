"""Text that comes from anywhere, made harmless for terminals and logs.

Escapes are those of JSON: whoever reads JSON from our output gets the text as it was.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # hail has no time for typing
    from collections.abc import Iterable
    from typing import Any, TextIO

_TERMINALS = (
    *range(32),
    *range(127, 160),  # C0, DEL and C1: what terminals obey
    0x61C,
    0x200E,
    0x200F,
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),  # order of writing
    0x2028,
    0x2029,  # some take them for the ends of lines
)
_ESCAPES = {code: f"\\u{code:04x}" for code in _TERMINALS}
_IN_TEXT = {code: text for code, text in _ESCAPES.items() if chr(code) not in "\n\t"}


def printable(text: str) -> str:
    """Escape what a terminal would obey; lines and tabs stay."""
    return text.translate(_IN_TEXT)


def one_line(text: str) -> str:
    """Escape the ends of lines as well."""
    return text.translate(_ESCAPES)


class PrintableStream:
    """A text stream that writes control characters as escapes."""

    def __init__(self, stream: "TextIO") -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(printable(text))
        return len(text)

    def writelines(self, lines: "Iterable[str]") -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._stream, name)


def harmless(stream: "TextIO") -> "TextIO":
    """Return a stream that writes to ``stream`` nothing that a terminal would obey."""
    return PrintableStream(stream)  # type: ignore[return-value]  # what it lacks, the stream has
