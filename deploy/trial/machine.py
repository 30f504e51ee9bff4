"""One node of the demonstration: its daemons, and the commands an operator types there."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from deploy.trial import network
from deploy.trial.place import BIN, Spot
from deploy.trial.transcript import Broken, Transcript

PATIENCE_S = 30.0


class Machine:
    """Commands run in the node's namespace, with the node's root directory."""

    def __init__(self, spot: Spot, transcript: Transcript) -> None:
        self.spot, self._transcript = spot, transcript

    @property
    def name(self) -> str:
        return self.spot.name

    def type(self, line: str, *, stdin: str = "", fails: bool = False) -> str:
        """Run a command as an operator would, show it, and return what it printed.

        Raises:
            Broken: it ended otherwise than expected.
        """
        self._transcript.command(self.name, line)
        start = time.monotonic()
        done = self.run(line, stdin=stdin)
        text = done.stdout + done.stderr
        self._transcript.output(text, time.monotonic() - start)
        if (done.returncode != 0) is not fails:
            raise Broken(f"“{line}” ended with {done.returncode}.")
        return text

    def run(self, line: str, *, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command without showing it."""
        return subprocess.run(
            self._inside(shlex.split(line)),
            input=stdin,
            capture_output=True,
            text=True,
            env=self._environment(),
            timeout=120,
            check=False,
        )

    def begin(self, line: str, log: str = "") -> subprocess.Popen[bytes]:
        """Start something that goes on by itself."""
        output: Path | str = os.devnull
        if log:
            output = self.spot.root / "var" / "log" / "gantry" / log
            output.parent.mkdir(parents=True, exist_ok=True)
        with Path(output).open("ab") as sink:
            return subprocess.Popen(
                self._inside(shlex.split(line)),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env=self._environment(),
                start_new_session=True,
            )

    def start_noded(self) -> None:
        """Start the node daemon, as systemd would, and return when it is ready."""
        self.spot.root.mkdir(parents=True, exist_ok=True)
        log = self.spot.root / "var" / "log" / "gantry" / "noded.out"
        seen = log.stat().st_size if log.exists() else 0
        self.begin("gantry-noded", log="noded.out")
        wait_until(lambda: b"is ready" in log.read_bytes()[seen:], f"noded on {self.name}")

    def kill(self, program: str) -> int:
        """Kill a daemon at once (SIGKILL); return how many processes that were."""
        victims = [pid for pid in network.processes(self.spot) if program in command_line(pid)]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(alive(pid) for pid in victims), f"the end of {program}")
        return len(victims)

    def power_off(self) -> int:
        """Kill all that runs on the node at once."""
        return self.kill("")

    def _inside(self, words: list[str]) -> list[str]:
        return ["ip", "netns", "exec", self.spot.namespace, *words]

    def _environment(self) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("HOME", "LANG", "LC_ALL") if key in os.environ}
        path = f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return kept | {"PATH": path, "GANTRY_ROOT": str(self.spot.root), "COLUMNS": "100"}


def wait_until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Poll until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Broken(f"Waited {seconds:g} s in vain for {what}.")
        time.sleep(0.02)


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
