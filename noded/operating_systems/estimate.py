"""How much a script that exports expects to write: it may say so by a descriptor that it gets."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from threading import Thread

LONGEST = 32  # bytes of what it says
_NUMBER = re.compile(rb"[0-9]{1,18}\s*")


class Estimate:
    """The pipe by which a script says a number of bytes, which is kept in a file."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)
        # Numbers that are free come first, and some shells know those of one digit only.
        self._read, self._write = os.pipe()

    @property
    def environment(self) -> Mapping[str, str]:
        """Where a script looks for it, as in ganeti-os-interface(7)."""
        return {"EXP_SIZE_FD": str(self._write)}

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What the script gets."""
        return (self._write,)

    def listen(self) -> None:
        """Wait for what it says, beside whatever else is done; it has started."""
        os.close(self._write)
        Thread(target=self._keep, daemon=True).start()

    def _keep(self) -> None:
        with os.fdopen(self._read, "rb") as said:
            first = said.readline(LONGEST)
            if _NUMBER.fullmatch(first):
                with suppress(OSError):  # all that is known of it may have been forgotten
                    self._file.write_bytes(first)
            while said.read1():
                pass  # one who says more shall not be ended by that
