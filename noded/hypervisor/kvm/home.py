"""A guest's directory: all that noded knows of it, and where its QEMU puts its sockets."""

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from common.messages import Report, from_json, to_json
from common.model.parameters import Accelerator
from common.names import InstanceId, InstanceName, MiB, NicId, is_uuid
from noded.hypervisor.kvm import process
from noded.hypervisor.kvm.commands import Files
from noded.hypervisor.kvm.process import Process

LONGEST_SOCKET_PATH = 107  # bytes; sun_path of unix(7) without its final zero
LOG_LIMIT = 1 << 20  # bytes of console output; the directory is in memory
LOG_KEPT = 1 << 18


class Record(Report):
    """What has to be remembered of a guest, in ``spec.json``; read leniently by later versions."""

    id: InstanceId
    name: InstanceName
    memory: MiB
    vcpus: int
    nics: tuple[NicId, ...]
    accelerator: Accelerator
    migration_bandwidth: int  # MiB/s
    migration_downtime: int  # ms


class Home:
    """The directory of one guest on this node."""

    def __init__(self, instances: Path, instance: InstanceId) -> None:
        self.instance = instance
        self.directory = instances / instance
        self.qmp_socket = self.directory / "qmp.sock"
        self.serial_socket = self.directory / "serial.sock"
        self.serial_log = self.directory / "serial.log"
        self.pid = self.directory / "pid"
        self.tls = self.directory / "tls"
        self.log = self.directory / "qemu.log"
        self._record = self.directory / "spec.json"
        self._button = self.directory / "power-button-pressed"

    @property
    def files(self) -> Files:
        """The paths that QEMU is told."""
        return Files(
            qmp_socket=str(self.qmp_socket),
            serial_socket=str(self.serial_socket),
            serial_log=str(self.serial_log),
            pid=str(self.pid),
        )

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
            self.directory.mkdir(mode=0o700, parents=True)
            # A crash in between leaves a directory without a record, which counts as nothing.
            part = self._record.with_suffix(".part")
            part.write_bytes(to_json(record))
            part.rename(self._record)
        except OSError as error:
            raise NodeFailure(f"Cannot write {self.directory}: {error.strerror}.") from error

    def record(self) -> Record | None:
        """Return what was written when the guest was started, if it ever was."""
        try:
            return from_json(self._record.read_bytes(), Record, what=str(self._record))
        except (OSError, InvalidRequest):
            return None

    def press_button(self) -> None:
        """Remember that the guest was told to power off, which it may do at any time since."""
        with suppress(FileNotFoundError):  # it has ended, and is forgotten
            self._button.touch()

    @property
    def is_button_pressed(self) -> bool:
        return self._button.exists()

    def process(self) -> Process | None:
        """Return the guest's QEMU, if it runs; to be closed by the caller."""
        return process.find(self.pid, self.instance)

    def last_words(self) -> str:
        """Return what QEMU printed, at most its last 4 KiB."""
        try:
            return self.log.read_bytes()[-4096:].decode(errors="replace")
        except OSError:
            return ""

    def trim_log(self) -> None:
        """Keep the console's log short: it grows with whatever the guest writes."""
        try:
            size = self.serial_log.stat().st_size
            if size <= LOG_LIMIT:
                return
            with self.serial_log.open("r+b") as log:
                log.seek(size - LOG_KEPT)
                kept = log.read()
                log.truncate(0)  # QEMU appends, so it goes on at the new end
                log.seek(0)
                log.write(kept)
        except FileNotFoundError:
            pass

    def remove(self) -> None:
        """Forget the guest."""
        shutil.rmtree(self.directory, ignore_errors=True)


def homes(instances: Path) -> Iterator[Home]:
    """Yield the directories of all guests that were ever started and not forgotten."""
    try:
        names = sorted(path.name for path in instances.iterdir())
    except FileNotFoundError:
        return
    yield from (Home(instances, InstanceId(name)) for name in names if is_uuid(name))
