"""What is written down of a guest beside its record: marks, each a file that is there or not."""

from contextlib import suppress
from pathlib import Path

from common.errors import NodeFailure
from common.names import TaskId

PRIVATE = 0o600


class Marks:
    """Those in the directory of one guest.

    Of a move it keeps what QEMU's own word is not enough for, each mark made before what it
    tells of can happen: that a guest which came may run (before it is told to), that one is
    leaving (before the transfer begins), that it may go on elsewhere before all of its memory
    does (before QEMU is told so), and that it has left (before anybody hears of it).
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._button = directory / "power-button-pressed"
        self._may_run = directory / "may-run"
        self._lacks_memory = directory / "lacks-memory"
        self._leaving = directory / "leaving"
        self._post_copy = directory / "post-copy"
        self._left = directory / "left"
        self._stands = directory / "stands-still"
        self._frozen = directory / "frozen"

    def press_button(self) -> None:
        """Remember that the guest was told to power off, which it may do at any time since."""
        with suppress(FileNotFoundError):  # it has ended, and is forgotten
            self._button.touch()

    @property
    def is_button_pressed(self) -> bool:
        return self._button.exists()

    def let_run(self) -> None:
        """Remember that a guest which came may run from now on.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        self.keep(self._may_run, b"")

    @property
    def may_run(self) -> bool:
        return self._may_run.exists()

    def lack_memory(self) -> None:
        """Remember that a guest which came is about to run before all of its memory is here.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        self.keep(self._lacks_memory, b"")

    def have_memory(self) -> None:
        """Forget that: all is here."""
        self._lacks_memory.unlink(missing_ok=True)

    @property
    def lacks_memory(self) -> bool:
        return self._lacks_memory.exists()

    def stand_still(self) -> None:
        """Remember that the guest is about to be stopped, for a moment, by noded.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        self.keep(self._stands, b"")

    def go_on(self) -> None:
        """Forget that: it runs again."""
        self._stands.unlink(missing_ok=True)

    @property
    def stands_still(self) -> bool:
        return self._stands.exists()

    def freeze(self) -> None:
        """Remember that the guest's agent is about to be told to have it write nothing.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        self.keep(self._frozen, b"")

    def thaw(self) -> None:
        """Forget that: it writes again."""
        self._frozen.unlink(missing_ok=True)

    @property
    def is_frozen(self) -> bool:
        return self._frozen.exists()

    def begin_leaving(self, move: TaskId) -> None:
        """Remember by which move its memory is going to leave.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        self._post_copy.unlink(missing_ok=True)
        self.keep(self._leaving, move.encode())

    @property
    def leaving_by(self) -> TaskId:
        """The move that was begun last."""
        return TaskId(_read(self._leaving))

    def begin_post_copy(self) -> None:
        """Remember that the guest may go on elsewhere from now on, before all its memory is there.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        self.keep(self._post_copy, b"")

    @property
    def has_begun_post_copy(self) -> bool:
        return self._post_copy.exists()

    def mark_left(self) -> None:
        """Remember that it has left, and never runs here again.

        Raises:
            NodeFailure: it cannot be remembered.
        """
        if not self._left.exists():
            self.keep(self._left, _read(self._leaving).encode())

    @property
    def has_left(self) -> bool:
        return self._left.exists()

    @property
    def left_by(self) -> TaskId:
        """The move by which it has left."""
        return TaskId(_read(self._left))

    def keep(self, path: Path, content: bytes) -> None:
        """Write a file of the directory as a whole.

        Raises:
            NodeFailure: the disk is full.
        """
        try:
            write_whole(path, content)
        except OSError as error:
            raise NodeFailure(f"Cannot write {path}: {error.strerror}.") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there as a whole, or not."""
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(content)
    part.chmod(PRIVATE)
    part.rename(path)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
