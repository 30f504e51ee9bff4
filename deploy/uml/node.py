"""One node: a user-mode Linux process, from power-on to power-off, and a way in by ssh."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from deploy.uml import network
from deploy.uml.command import Trouble, run
from deploy.uml.kernel import Kernel, of_image
from deploy.uml.place import MEMORY, SHARED_DISKS, Place, Spot

BOOT = Path(__file__).with_name("boot")
MEMORY_MIB = 1536  # taken from /dev/shm as it is used
DISK_MIB = 24 << 10  # sparse
END_S = 10.0  # for killed processes to be gone
POLL_S = 0.1
EXEC_POLLS = 20


class Node:
    """A node may be on or off; its disks stay."""

    def __init__(self, place: Place, spot: Spot) -> None:
        self.place, self.spot = place, spot

    @property
    def name(self) -> str:
        return self.spot.name

    @property
    def pid(self) -> int | None:
        """The main process; None while the node is off."""
        try:
            pid = int(self.spot.process.read_text())
        except (OSError, ValueError):
            return None
        for _ in range(EXEC_POLLS):  # while it becomes another program it has no words
            if self._is_ours(_read(Path(f"/proc/{pid}/cmdline"))):
                return pid
            if not _is_nameless(pid):
                break
            time.sleep(POLL_S)
        return None

    def power_on(self, image: Path) -> None:
        """Start the node, unless it is on; it is ready later (see ``power.wait_until_up``)."""
        if self.pid is not None:
            return
        self._end_leftovers()
        self.spot.directory.mkdir(parents=True, exist_ok=True)
        (self.place.shared / Path(SHARED_DISKS).name).mkdir(parents=True, exist_ok=True)
        if not self.spot.disk.exists():
            with self.spot.disk.open("wb") as disk:
                disk.truncate(DISK_MIB << 20)
        network.plug_in(self.place, self.spot)
        kernel = of_image(image)
        words = (*network.inside(self.place), *self._command(image, kernel))
        surroundings = os.environ | {
            "TMPDIR": str(MEMORY),
            "HOME": str(self.spot.directory),
            "LAB_KERNEL": str(kernel.program),
        }
        with self.spot.console.open("ab") as console:
            actions = [
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, console.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, console.fileno(), 2),
            ]
            pid = os.posix_spawnp(words[0], words, surroundings, file_actions=actions, setsid=True)
        self.spot.process.write_text(str(pid))

    def _command(self, image: Path, kernel: Kernel) -> tuple[str, ...]:
        spot = self.spot
        return (
            str(BOOT),
            f"umid={spot.name}",
            f"uml_dir={spot.directory}/",
            f"mem={MEMORY_MIB}M",
            f"ubd0={spot.system},{image}",
            f"ubd1={spot.disk}",
            "root=/dev/ubda",
            "rw",
            f"vec0:transport=tap,ifname={spot.tap},mac={spot.mac}",
            "con=null",
            "con0=null,fd:1",
            "quiet",
            f"systemd.hostname={spot.name}",
            f"systemd.machine_id={spot.number:032x}",
            f"lab.address={spot.address}",
            f"lab.shared={self.place.shared}",
            *kernel.parameters,
        )

    def run(self, line: str, *, stdin: str = "", timeout_s: float = 120.0) -> str:
        """Run a shell command on the node and return what it printed.

        Raises:
            Trouble: it failed, or the node does not answer.
        """
        self.check_on()
        return run((*self.shell(), line), stdin=stdin, timeout_s=timeout_s)

    def shell(self) -> tuple[str, ...]:
        """Return the words that reach the node's shell over a connection that is kept for a while.

        Another one takes the node half a second of computing.
        """
        keep = f"-oControlPath={self.spot.line}", "-oControlMaster=auto", "-oControlPersist=20"
        host, *words = reversed(self.ssh())
        return (*reversed(words), *keep, host)

    def ssh(self) -> tuple[str, ...]:
        """Return the words that reach the node's shell over a connection of their own."""
        options = (
            "StrictHostKeyChecking=no",
            "UserKnownHostsFile=/dev/null",
            "LogLevel=ERROR",
            "ConnectTimeout=20",
            "ServerAliveInterval=10",
            "IdentitiesOnly=yes",
        )
        flags = [word for option in options for word in ("-o", option)]
        key = str(self.place.key)
        return (*network.inside(self.place), "ssh", *flags, "-i", key, f"root@{self.spot.address}")

    def power_off(self) -> None:
        """End the node at once, as a pulled plug would."""
        if self.spot.line.exists():
            with suppress(Trouble):  # it may have noticed by itself
                run((*self.shell(), "-O", "exit"))
        if (pid := self.pid) is not None:
            os.killpg(pid, signal.SIGKILL)
        self._end_leftovers()
        self.spot.process.unlink(missing_ok=True)

    @property
    def state(self) -> str:
        """``on``, ``frozen`` or ``off``."""
        if (pid := self.pid) is None:
            return "off"
        kernel_says = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return "frozen" if kernel_says in "Tt" else "on"

    def freeze(self) -> None:
        """Stop the node in its tracks; it does not notice."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    @property
    def memory_mib(self) -> int:
        """What the node takes of this machine's memory: its RAM file, as far as it was used."""
        if (pid := self.pid) is None:
            return 0
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return next(int(w[1]) for w in map(str.split, rollup.splitlines()) if w[0] == "Rss:") >> 10

    def check_on(self) -> None:
        """Look whether the node runs.

        Raises:
            Trouble: it is off, or frozen.
        """
        if self.state == "off":
            raise Trouble(f"{self.name} is off; “deploy/lab up” starts it.")
        if self.state == "frozen":
            raise Trouble(f"{self.name} is frozen; “deploy/lab thaw {self.name}” ends that.")

    def _signal(self, number: signal.Signals) -> None:
        if (pid := self.pid) is None:
            raise Trouble(f"{self.name} is off; “deploy/lab up” starts it.")
        os.kill(pid, number)

    def _end_leftovers(self) -> None:
        """Wait for, and end, processes of the node that outlived its main process."""
        end = time.monotonic() + END_S
        while left := self._processes():
            if time.monotonic() > end:
                raise Trouble(f"Processes of {self.name} do not end: {left}.")
            for pid in left:
                with suppress(ProcessLookupError):  # it has just ended
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)

    def _processes(self) -> list[int]:
        commands = {path: _read(path) for path in Path("/proc").glob("[0-9]*/cmdline")}
        return [
            int(path.parent.name) for path, command in commands.items() if self._is_ours(command)
        ]

    def _is_ours(self, command: bytes) -> bool:
        """Tell a process of this node, by its words, from one of another lab's."""
        own = f"umid={self.name}", f"uml_dir={self.spot.directory}/"
        return all(f"{word}\0".encode() in command for word in own)

    def last_words(self) -> str:
        """Return where the node's console is, and the end of it."""
        try:
            lines = self.spot.console.read_text(errors="replace").splitlines()[-10:]
        except FileNotFoundError:
            return "It has not written to its console."
        return f"Its console ({self.spot.console}) ends with:\n" + "\n".join(lines)


def _is_nameless(pid: int) -> bool:
    """Tell whether a process runs, and has no words."""
    state = _read(Path(f"/proc/{pid}/stat")).rpartition(b")")[2].split()[:1]
    return state not in ([], [b"Z"], [b"X"]) and not _read(Path(f"/proc/{pid}/cmdline"))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # it has ended
        return b""
