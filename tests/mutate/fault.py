"""One planted fault: a small change to one file, and the promise that it breaks."""

from dataclasses import dataclass
from pathlib import Path


class Stale(Exception):
    """The text that a fault replaces is not in its file, or not only once."""


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` in ``file``; ``tests`` are those that are expected to notice."""

    name: str
    promise: str  # what is true no longer
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = ()  # paths, and after a blank what “-k” takes
    also: tuple[tuple[str, str], ...] = ()  # further texts of the file, and what they become

    def planted(self, root: Path) -> str:
        """Return the whole file with the fault in it.

        Raises:
            Stale: the product has changed; the fault has to be described anew.
        """
        path = root / self.file
        text = path.read_text() if path.exists() else ""
        for old, new in ((self.old, self.new), *self.also):
            found = text.count(old)
            if found != 1 or old == new:
                raise Stale(
                    f"The fault “{self.name}” does not apply: a text that it replaces occurs "
                    f"{found} times in {self.file}, and has to occur once."
                )
            text = text.replace(old, new)
        return text
