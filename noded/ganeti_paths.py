"""Links where Ganeti's programs look: for the master's socket, ssconf, and the key of confd.

They are there while the file ``ganeti_paths`` of ssconf says so. What Ganeti itself, or somebody
else, has put in their places is left alone, and so are links that people have made themselves.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from common.paths import Paths

log = logging.getLogger(__name__)

SWITCH = "ganeti_paths"  # the file that says that they are wanted; there is none where not
YES = "True"


class GanetiPaths:
    """The links of one node; what they lead to need not be there (yet)."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    def make(self) -> None:
        """Make the links if they are wanted.

        Whatever fails is told in the log: nothing of the cluster depends on them.
        """
        with _told_in_log():
            for link, target in (self._links() if self._are_wanted() else {}).items():
                _make(link, target)

    def take_away(self) -> None:
        """Take the links away if they are wanted so far; likewise.

        Where they never were, all that leads to us was made by people, and stays.
        """
        with _told_in_log():
            for link in tuple(self._made()) if self._are_wanted() else ():
                link.unlink()

    def _are_wanted(self) -> bool:
        try:
            return (self._paths.ssconf / SWITCH).read_text().strip() == YES
        except (OSError, ValueError):
            return False

    def _links(self) -> Mapping[Path, Path]:
        sockets, data = self._paths.ganetis_sockets, self._paths.ganetis_data
        return {
            sockets / "ganeti-master": self._paths.luxi_socket,
            sockets / "ganeti-query": self._paths.luxi_socket,
            data / "hmac.key": self._paths.confd / "hmac.key",
            **{
                data / f"ssconf_{file.name}": file
                for file in sorted(self._paths.ssconf.iterdir())
                if file.name != SWITCH and not file.name.startswith(".")
            },
        }

    def _made(self) -> Iterator[Path]:
        """Yield the links that are ours, by where they lead."""
        ours = (self._paths.state, self._paths.runtime)
        for folder in (self._paths.ganetis_sockets, self._paths.ganetis_data):
            for link in folder.iterdir() if folder.is_dir() else ():
                if link.is_symlink() and any(link.readlink().is_relative_to(one) for one in ours):
                    yield link


@contextmanager
def _told_in_log() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        log.warning("The links for Ganeti's programs are not as they should be: %s.", error)


def _make(link: Path, target: Path) -> None:
    if link.is_symlink() and link.readlink() == target:
        return
    if link.is_symlink() or link.exists():
        log.warning("%s is something else, and stays: Ganeti's programs find that there.", link)
        return
    _make_folder(link.parent)
    link.symlink_to(target)


def _make_folder(folder: Path) -> None:
    """Make it and those above, for everybody to enter, whatever the umask; none is changed."""
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir()
        folder.chmod(0o755)
