"""Start and stop this node's coordinator: through systemd, or as a process of our own.

The latter when ``GANTRY_ROOT`` is set, that is, with several nodes on one machine, and where
systemd does not run.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from common.errors import GntError, NodeFailure
from common.log_lines import message_of
from common.luxi.client import Client
from common.paths import Paths
from common.ports import port
from coordinator.cli.parser import Parser

PORT = 1811
UNIT = "gantry-coordinator.service"
OPTIONS = "GANTRY_COORDINATOR_OPTIONS"  # which the unit passes on
CONFIRM_S = 120.0  # confirming mastership waits for nodes that do not answer
STOP_S = 30.0
POLL_S = 0.05


def add_port(parser: Parser) -> None:
    """Add the option of commands that speak to this node's noded themselves."""
    parser.add_argument("--port", type=port, default=PORT, metavar="N", help="of noded here (1811)")


def port_words(port: int) -> tuple[str, ...]:
    """Return the port of noded as arguments of ``gantry-coordinator``."""
    return () if port == PORT else ("--port", str(port))


def by_systemd() -> bool:
    """Tell whether the coordinator of this node is systemd's to start."""
    return not os.environ.get("GANTRY_ROOT") and Path("/run/systemd/system").is_dir()


def start(arguments: Sequence[str] = ()) -> None:
    """Start the coordinator, and return when it answers; one that answers already is kept.

    Args:
        arguments: for ``gantry-coordinator``, this time only.

    Raises:
        NodeFailure: it ended, or does not answer in time; with the end of what it said.
    """
    paths = Paths()
    if by_systemd():
        _start_unit(arguments)
        return
    if is_answering():
        return
    paths.logs.mkdir(parents=True, exist_ok=True)
    log = paths.logs / "coordinator.log"
    begin = log.stat().st_size if log.exists() else 0
    pid = _spawn([_program(), *arguments], log)
    _wait(lambda: _has_ended(pid) or is_answering(), CONFIRM_S)
    if _has_ended(pid):
        raise NodeFailure(f"The coordinator ended at once: {_tail(log, begin)}", log=str(log))
    if not is_answering():
        raise NodeFailure(
            f"The coordinator does not answer after {CONFIRM_S:g} seconds; {log} tells more."
        )


def stop() -> None:
    """Stop the coordinator, if it runs, and return when it is gone.

    Raises:
        NodeFailure: it does not end.
    """
    if by_systemd():
        _systemctl("stop", UNIT)
        return
    number = coordinator_pid()
    if number is None:
        return
    os.kill(number, signal.SIGTERM)
    if not _wait(lambda: not Path(f"/proc/{number}").exists() or _is_zombie(number), STOP_S):
        raise NodeFailure(f"The coordinator, process {number}, does not end.", pid=number)


def is_answering() -> bool:
    """Tell whether a coordinator answers on this node."""
    with Client(str(Paths().luxi_socket), connect_s=1) as client:
        try:
            client.call("QueryConfigValues", ["cluster_name"], answer_s=10)
        except GntError:
            return False
    return True


def coordinator_pid() -> int | None:
    """Return who listens on the socket, as the kernel tells."""
    import socket
    import struct

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(str(Paths().luxi_socket))
        except OSError:
            return None
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid: int = struct.unpack("3i", peer)[0]
    return pid


def _spawn(words: list[str], log: Path) -> int:
    """Start a process that outlives us and our terminal; what it says goes to ``log``."""
    with log.open("ab") as output:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
            (os.POSIX_SPAWN_DUP2, output.fileno(), 2),
        ]
        try:
            return os.posix_spawnp(words[0], words, os.environ, file_actions=actions, setsid=True)
        except OSError as error:
            raise NodeFailure(f"“{words[0]}” cannot be started: {error.strerror}.") from error


def _has_ended(pid: int) -> bool:
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _program() -> str:
    beside = Path(sys.argv[0]).resolve().with_name("gantry-coordinator")
    return str(beside) if beside.exists() else "gantry-coordinator"


def _start_unit(arguments: Sequence[str]) -> None:
    """Start the unit, and return when it says that it is ready.

    Raises:
        NodeFailure: it failed, or ended at once because another node is master.
    """
    # An operator's word is for this start only: systemd, should it start the unit again by
    # itself, must not have it.
    _systemctl("set-environment", f"{OPTIONS}={' '.join(arguments)}")
    try:
        _systemctl("start", UNIT)
    finally:
        _systemctl("unset-environment", OPTIONS)
    if not is_answering():  # to end at once is no failure to systemd, where another is master
        told = _systemctl("show", "--property=StatusText", "--value", UNIT)
        raise NodeFailure(
            f"The coordinator ended at once. {told or 'It said nothing.'} "
            f"“journalctl -u {UNIT}” tells more."
        )


def _systemctl(*words: str) -> str:
    command = ["systemctl", *words]
    done = subprocess.run(  # noqa: TID251 -- there is no loop to block here
        command, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise NodeFailure(
            f"“{' '.join(command)}” failed: {done.stderr.strip()} "
            f"“journalctl -u {UNIT}” tells more."
        )
    return done.stdout.strip()


def _wait(is_done: Callable[[], bool], patience_s: float) -> bool:
    end = time.monotonic() + patience_s
    while not is_done():
        if time.monotonic() > end:
            return False
        time.sleep(POLL_S)  # noqa: TID251 -- there is no loop to block here
    return True


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (OSError, IndexError):
        return True


def _tail(log: Path, begin: int) -> str:
    """Return what the last line says that was logged since ``begin``."""
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read()[-4000:].decode(errors="replace").strip().splitlines()
    return message_of(lines[-1]) if lines else f"it said nothing ({log})"
