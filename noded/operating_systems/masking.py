"""Keeping what is confidential out of what a script says."""

import re
from collections.abc import Sequence

HIDDEN = b"********"
SHORTEST = 4  # bytes; less than that is in any text, and no secret


class Mask:
    """Hides values of parameters wherever they stand, and each line of one that has several.

    What is said comes in pieces, and a secret may begin in one and end in the next: the end of a
    piece waits for what follows, unless it is that of a line.
    """

    def __init__(self, secrets: Sequence[str]) -> None:
        lines = {line.strip().encode() for secret in secrets for line in secret.splitlines()}
        found = sorted((each for each in lines if len(each) >= SHORTEST), key=len, reverse=True)
        self._secrets = re.compile(b"|".join(map(re.escape, found))) if found else None
        self._longest = len(found[0]) if found else 0
        self._waiting = b""

    def hide(self, piece: bytes) -> bytes:
        """Return what can be told of all pieces so far, and was not yet."""
        text, self._waiting = self._waiting + piece, b""
        if self._secrets is None:
            return text
        # A secret that begins before that is there as a whole.
        certain = len(text) if text.endswith(b"\n") else max(0, len(text) - self._longest + 1)
        told, at = [], 0
        for match in self._secrets.finditer(text):
            if match.start() >= certain:
                break
            told += [text[at : match.start()], HIDDEN]
            at = match.end()
        self._waiting = text[max(at, certain) :]
        return b"".join((*told, text[at:certain]))

    def rest(self) -> bytes:
        """Return what has waited, when nothing follows."""
        text, self._waiting = self._waiting, b""
        return self._secrets.sub(HIDDEN, text) if self._secrets else text
