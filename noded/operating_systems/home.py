"""What noded keeps of the run of a script; the script's output is kept elsewhere, and longer."""

import os
from contextlib import suppress
from pathlib import Path

from common.errors import GntError
from common.messages import Order, Report, from_json, to_json
from common.names import InstanceId
from noded.copies import ending, estimate
from noded.system.process_home import PRIVATE, ProcessHome

RESULT = "result.json"
STREAM = "stream"  # the pipe of a script that imports or exports, until it is met


class Run(Order):
    """A script that was begun.

    Attributes:
        script: what it is, for messages: “create of debootstrap+default for web1”.
        instance: whose disks it works on.
        log: where its output goes.
        disks: the paths of those.
        layers: the devices that were on top of those before it began.
    """

    script: str
    instance: InstanceId
    log: str
    disks: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()


class Result(Report):
    """How a script ended: its status, negative for a signal."""

    status: int
    was_stopped: bool = False

    @property
    def ending(self) -> str:
        """Say how."""
        return ending.told(self.status)


class Home(ProcessHome):
    def keep(self, run: Run) -> None:
        self.write("run.json", to_json(run))

    def make_stream(self) -> Path:
        """Make the pipe of a script that imports or exports, and return where it is."""
        path = self.directory / STREAM
        os.mkfifo(path, PRIVATE)
        return path

    def make_estimate(self) -> str:
        """Make the file for how much a script expects to write, and return where it is."""
        self.write(estimate.FILE, b"")
        return str(self.directory / estimate.FILE)

    def make_ending(self) -> str:
        """Make the file by which others hear how a script ended, and return where it is."""
        self.write(ending.FILE, b"")
        return str(self.directory / ending.FILE)

    def make_sandbox(self) -> str:
        """Make the directory where a script that is not trusted finds all that it sees."""
        path = self.directory / "root"
        path.mkdir(mode=PRIVATE | 0o100)
        return str(path)

    def run(self) -> Run | None:
        with suppress(OSError):
            text = (self.directory / "run.json").read_bytes()
            return from_json(text, Run, what="a run")
        return None

    def result(self) -> Result | None:
        """Return how the script ended; None while it has not."""
        with suppress(OSError, GntError):
            return from_json((self.directory / RESULT).read_bytes(), Result, what="a result")
        return None


def read_lines(log: Path, offset: int, most: int, *, has_ended: bool) -> tuple[str, int]:
    """Return whole lines of a log from ``offset`` on, and where they end.

    What has ended may lack the end of its last line, and one that is too long comes in pieces.
    """
    try:
        with log.open("rb") as file:
            file.seek(offset)
            data = file.read(most)
    except FileNotFoundError:
        return "", offset
    end = data.rfind(b"\n") + 1
    if (has_ended and len(data) < most) or (not end and len(data) == most):
        end = len(data)
    return data[:end].decode(errors="replace"), offset + end
