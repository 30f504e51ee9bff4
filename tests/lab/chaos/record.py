"""What guests were heard to say, and whether their disks still have it."""

from collections import defaultdict

from tests.support.sequence import Sequence


class Record:
    """The numbers that each guest has told: it tells none that is not on its disk."""

    def __init__(self) -> None:
        self.told: defaultdict[str, int] = defaultdict(int)  # the largest, by guest
        self.lost: list[str] = []  # sentences
        self._starts: set[str] = set()

    def hear(self, line: str) -> None:
        """Take a line of ``listen``; one that is told again makes no difference."""
        guest, what, number, *where = line.split()
        if what == "start" and where[0] not in self._starts:
            self._starts.add(where[0])
            if int(number) < self.told[guest]:
                self.lost.append(
                    f"{guest} went on from {number} after it had told {self.told[guest]}: what "
                    f"was written in between is lost."
                )
        self.told[guest] = max(self.told[guest], int(number))

    def check(self, guest: str, told: int, where: str, found: Sequence) -> list[str]:
        """Say what is wrong with a copy of a guest's disk.

        Args:
            guest: whose it is.
            told: the largest number that it had told before the copy was read.
            where: the copy, in words.
            found: what is on it.
        """
        wrong = [f"{where}, of {guest}: {line}" for line in found.wrong]
        if found.whole_to < told:
            wrong.append(
                f"{where}, of {guest}, is whole up to {found.whole_to}; it had told {told}."
            )
        return wrong
