"""A real cluster of three master candidates on this machine: every daemon a process of its own.

All listen on the loopback address, each on a port of its own, and live below one directory.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from common.luxi.client import Client
from common.paths import Paths

NAMES = ("alpha", "beta", "gamma")
LOCALHOST = "127.0.0.1"
PATIENCE_S = 60.0
GANETI = "Ganeti 3.0.2, from a recorded run on such a machine"


class Machine:
    """One node: its directory, its port, and whatever runs there."""

    def __init__(self, name: str, base: Path) -> None:
        self.name, self.paths, self.port = name, Paths(str(base / name)), _free_port()

    def start_noded(self) -> None:
        """Start the node daemon; return when it is ready."""
        process = self.begin("gantry-noded", "--address", LOCALHOST, "--port", str(self.port))
        assert process.stdout is not None
        said: list[str] = []
        while "is ready" not in "".join(said[-1:]):
            if not (line := process.stdout.readline()):
                raise RuntimeError(f"noded of {self.name} did not start: {''.join(said)}")
            said.append(line)

    def run(self, *words: str, stdin: str = "") -> str:
        """Run one of our commands to its end; return what it printed."""
        done = subprocess.run(
            _python(*words), env=self._environment(), input=stdin, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"“{' '.join(words)}” on {self.name} failed: {done.stdout}")
        return done.stdout

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Start one of our commands, with its output in a pipe."""
        return subprocess.Popen(
            _python(*words), env=self._environment(), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def client(self) -> Client:
        return Client(str(self.paths.luxi_socket), connect_s=1)

    def processes(self, program: str = "") -> list[int]:
        """Return the processes that live in this node's directory."""
        mark = f"GANTRY_ROOT={self.paths.root}".encode()
        everything = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdecimal()]
        here = [pid for pid in everything if mark in _read(pid, "environ").split(b"\0")]
        return [pid for pid in here if program.encode() in _read(pid, "cmdline")]

    def kill(self, program: str = "") -> None:
        """Kill at once (SIGKILL) what runs here; return when it is gone."""
        victims = self.processes(program)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not any(_is_alive(pid) for pid in victims), f"the end of {program}")

    def signal(self, number: signal.Signals) -> None:
        for pid in self.processes():
            os.kill(pid, number)

    def _environment(self) -> dict[str, str]:
        # Compiled once, as it is where it was installed, whatever a developer prefers.
        kept = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
        return kept | {"GANTRY_ROOT": str(self.paths.root)}


@contextmanager
def trio(*options: str) -> Iterator[tuple[Machine, ...]]:
    """Run a cluster whose first node is the master; nothing of it is left afterwards.

    ``options`` are for ``gnt-cluster init``. It lives on a real disk, where fsync costs what it
    costs: /tmp often is none.
    """
    directory = os.environ.get("TMPDIR", "/var/tmp")
    with tempfile.TemporaryDirectory(dir=directory, prefix="gantry-bench-") as base:
        machines = tuple(Machine(name, Path(base)) for name in NAMES)
        try:
            for machine in machines:
                machine.start_noded()
            _form_cluster(options, *machines)
            yield machines
        finally:
            for machine in machines:
                machine.kill()


def _form_cluster(options: Sequence[str], master: Machine, *others: Machine) -> None:
    master.run(
        "gnt-cluster", "init", "--node-name", master.name, "--address", LOCALHOST,
        "--port", str(master.port), *options, "bench.example",
    )  # fmt: skip
    for machine in others:
        token = machine.run("gantry", "join-token")
        master.run(
            "gnt-node", "add", "--address", LOCALHOST, "--port", str(machine.port),
            "--token-file", "-", machine.name, stdin=token,
        )  # fmt: skip


def wait_until(holds: Callable[[], bool], what: str, pause_s: float = 0.005) -> None:
    """Poll until something holds.

    Raises:
        RuntimeError: it does not after a minute.
    """
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"Waited {PATIENCE_S:g} s in vain for {what}.")
        time.sleep(pause_s)


def cpu_s(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mib(pid: int) -> dict[str, float]:
    """Return the figures of /proc/PID/status that end in kB, as "VmRSS", in MiB."""
    lines = (line.split() for line in _read(pid, "status").decode().splitlines())
    return {words[0][:-1]: int(words[1]) / 1024 for words in lines if words[-1:] == ["kB"]}


def _python(program: str, *words: str) -> list[str]:
    """Name the installed program beside the running interpreter."""
    return [str(Path(sys.executable).with_name(program)), *words]


def _read(pid: int, what: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""  # it has ended


def _is_alive(pid: int) -> bool:
    return _read(pid, "stat").rpartition(b")")[2].split()[:1] not in ([], [b"Z"], [b"X"])


def _free_port() -> int:
    with socket.create_server((LOCALHOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
