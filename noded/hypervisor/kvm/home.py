"""A guest's directory: all that noded knows of it, and how its QEMU is reached.

All in it is root's. QEMU, which runs as another user, was given what it needs as descriptors;
it may pass through, to what is lent to it for a moment.
"""

import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.errors import InvalidRequest, NodeFailure
from common.messages import Report, from_json, to_json
from common.model.kvm_words import Accelerator
from common.names import DiskId, InstanceId, InstanceName, MiB, NicId, TaskId, is_uuid
from noded.hypervisor.kvm import commands, process
from noded.hypervisor.kvm.marks import PRIVATE, Marks, write_whole
from noded.system.process import Process

LONGEST_SOCKET_PATH = 107  # bytes; sun_path of unix(7) without its final zero
LOG_LIMIT = 1 << 20  # bytes of a log; the directory is in memory
LOG_KEPT = 1 << 18
WAITING = 8  # callers for whom QEMU has no time yet
PASSABLE = 0o711  # others may go through and not look around


class Record(Report):
    """What has to be remembered of a guest, in ``spec.json``; read leniently by later versions."""

    id: InstanceId
    name: InstanceName
    memory: MiB
    vcpus: int
    nics: tuple[NicId, ...]
    accelerator: Accelerator
    display: str = ""  # address and port
    display_wants_password: bool = False
    user: int = 0  # as whom its QEMU runs; versions before had no other than root
    disks: dict[DiskId, int] | None = None  # their slots; versions before did not tell
    nic_slots: dict[NicId, int] | None = None  # likewise
    parameters: dict[str, Any] = {}  # that it was started with
    wanted_memory: MiB = MiB(0)  # of its memory, what it is to use; 0: all
    held: bool = False  # it was started paused, and has not been told to run
    receives: TaskId = TaskId("")  # the move by which its memory comes; empty if it was booted

    @property
    def has_agent(self) -> bool:
        """Whether there is a line to an agent in the guest, if it has one."""
        return bool(self.parameters.get("use_guest_agent"))


class Home(Marks):
    """The directory of one guest on this node."""

    def __init__(self, instances: Path, instance: InstanceId) -> None:
        super().__init__(instances / instance)
        self.instance = instance
        self.qmp_socket = self.directory / "qmp.sock"
        self.news_socket = self.directory / "news.sock"
        self.serial_socket = self.directory / "serial.sock"
        self.agent_socket = self.directory / "agent.sock"
        self.serial_log = self.directory / "serial.log"
        self.pid = self.directory / "pid"
        self.root = self.directory / "root"
        self.tpm = self.directory / "tpm"
        self.tpm_log = self.directory / "tpm.log"
        self.tpm_pid = self.directory / "tpm-pid"
        self.tls = self.directory / "tls"
        self.log = self.directory / "qemu.log"
        self._record = self.directory / "spec.json"

    @property
    def mark(self) -> str:
        """What the command line of this guest's QEMU contains, and no other's."""
        return commands.quoted(str(self.directory))

    def prepare(self, record: Record) -> None:
        """Make the directory anew; whatever ran here has to be gone.

        Raises:
            NodeFailure: the disk is full, or the path is too long for a socket.
        """
        if len(os.fsencode(self.serial_socket)) > LONGEST_SOCKET_PATH:
            raise NodeFailure(
                f"{self.serial_socket} is too long for a socket; use a shorter GANTRY_ROOT."
            )
        try:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory.mkdir(parents=True)
            self.directory.chmod(PASSABLE)
            # A crash in between leaves a directory without a record, which counts as nothing.
            write_whole(self._record, to_json(record))
        except OSError as error:
            raise NodeFailure(f"Cannot write {self.directory}: {error.strerror}.") from error

    def listen(self, path: Path) -> socket.socket:
        """Make one of the sockets through which noded, and nobody else, reaches the guest.

        Raises:
            OSError: the disk is full.
        """
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(path))
            path.chmod(PRIVATE)
            listener.listen(WAITING)
        except OSError:
            listener.close()
            raise
        return listener

    def open_serial_log(self) -> int:
        """Open the log that QEMU writes; the descriptor is the caller's.

        Raises:
            OSError: the disk is full.
        """
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(self.serial_log, flags, PRIVATE)

    def write(self, record: Record) -> None:
        """Write down what is known by now.

        Raises:
            NodeFailure: the disk is full.
        """
        self.keep(self._record, to_json(record))

    def note(self, started: Process) -> None:
        """Write down which process is the guest's.

        Raises:
            OSError: the disk is full.
        """
        write_whole(self.pid, b"%d\n" % started.pid)

    def note_tpm(self, started: Process) -> None:
        """Write down which process is the guest's TPM.

        Raises:
            OSError: the disk is full.
        """
        write_whole(self.tpm_pid, b"%d\n" % started.pid)

    def record(self) -> Record | None:
        """Return what was written when the guest was started, if it ever was."""
        try:
            return from_json(self._record.read_bytes(), Record, what=str(self._record))
        except (OSError, InvalidRequest):
            return None

    def waits(self, record: Record) -> bool:
        """Tell whether its memory was to come here and nobody has had it run yet."""
        return bool(record.receives) and not self.may_run

    def process(self) -> Process | None:
        """Return the guest's QEMU, if it runs; to be closed by the caller."""
        if not self.directory.exists():
            return None
        return process.find(self.pid, self.instance, self.mark)

    def tpm_process(self) -> Process | None:
        """Return the guest's TPM, if it runs; to be closed by the caller."""
        if not self.tpm.exists():  # made before a TPM is started, so this guest has none
            return None
        return process.find_tpm(self.tpm_pid, str(self.tpm))

    @property
    def lost_tpm(self) -> bool:
        """Tell whether this guest goes on though its TPM has ended."""
        if not self.tpm.exists():
            return False
        found = self.tpm_process()
        if found is None:
            return self.runs  # in this order: a TPM ends with its guest
        with found:
            return False

    @property
    def runs(self) -> bool:
        """Tell whether there is a process of this guest."""
        found = self.process()
        if found is None:
            return False
        with found:
            return True

    def last_words(self) -> str:
        """Return what QEMU printed, at most its last 4 KiB."""
        return _end_of(self.log)

    def last_words_of_tpm(self) -> str:
        """Return what the guest's TPM printed, at most its last 4 KiB."""
        return _end_of(self.tpm_log)

    def trim_logs(self) -> None:
        """Keep all logs short: they grow with whatever the guest writes, or has QEMU say."""
        for log in (self.serial_log, self.log, self.tpm_log):
            _trim(log)

    def remove(self) -> None:
        """Forget the guest."""
        shutil.rmtree(self.directory, ignore_errors=True)


def _end_of(log: Path) -> str:
    try:
        return log.read_bytes()[-4096:].decode(errors="replace")
    except OSError:
        return ""


def _trim(path: Path) -> None:
    try:
        size = path.stat().st_size
        if size <= LOG_LIMIT:
            return
        with path.open("r+b") as log:
            log.seek(size - LOG_KEPT)
            kept = log.read(LOG_KEPT)
            log.truncate(0)  # QEMU appends, so it goes on at the new end
            log.seek(0)
            log.write(kept)
    except FileNotFoundError:
        pass


def homes(instances: Path) -> Iterator[Home]:
    """Yield the directories of all guests that were ever started and not forgotten."""
    try:
        names = sorted(path.name for path in instances.iterdir())
    except FileNotFoundError:
        return
    yield from (Home(instances, InstanceId(name)) for name in names if is_uuid(name))
