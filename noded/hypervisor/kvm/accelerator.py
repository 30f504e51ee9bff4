"""Whether KVM works here, found out by trying: once for each boot of the node."""

import asyncio
import logging
import os
import stat
import tempfile
from pathlib import Path

from common.errors import InvalidRequest
from common.messages import Report, from_json, to_json
from common.model.kvm_words import Accelerator
from noded.hypervisor.kvm import commands
from noded.hypervisor.kvm.boot_sector import boot_sector
from noded.hypervisor.kvm.user import NOBODY, ROOT, run_as
from noded.system.execute import CommandFailed, execute

DEVICE = Path("/dev/kvm")
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
WAIT_S = 20.0  # of a node too busy to tell anything
_BOTH_GROUP = stat.S_IRGRP | stat.S_IWGRP
_BOTH_OTHERS = stat.S_IROTH | stat.S_IWOTH

log = logging.getLogger(__name__)


class Verdict(Report):
    """What a trial said; it holds until the node boots again or QEMU changes."""

    trial: str  # boot and program it is about
    kvm: bool
    reason: str  # why not, as a clause


class Accelerators:
    """Knows how guests of this node are to be run."""

    def __init__(self, record: Path, *, device: Path = DEVICE) -> None:
        """Keep the verdict in the file ``record``, whose directory exists."""
        self._record = record
        self._device = device
        self._turn = asyncio.Lock()

    @property
    def groups(self) -> tuple[int, ...]:
        """The groups in which somebody has to be, who is not root, to use KVM.

        Raises:
            OSError: there is no KVM.
        """
        found = self._device.stat()
        is_for_all = found.st_mode & _BOTH_OTHERS == _BOTH_OTHERS
        return () if is_for_all or os.geteuid() != ROOT else (found.st_gid,)

    async def verdict(self, program: str) -> Verdict:
        """Say whether the QEMU at ``program`` runs guests with KVM here; takes up to 2 s once."""
        async with self._turn:
            trial = _trial(program)
            known = self._read()
            if known and known.trial == trial:
                return known
            verdict, is_sure = await self._try(program, trial)
            if is_sure:
                log.info("guests run with %s here", "KVM" if verdict.kvm else "TCG")
                self._record.write_bytes(to_json(verdict))
            return verdict

    async def _try(self, program: str, trial: str) -> tuple[Verdict, bool]:
        """Return the verdict, and whether it would be the same another time."""
        if not self._device.exists():
            reason = f"there is no {self._device}"
            return Verdict(trial=trial, kvm=False, reason=reason), False  # a module may be loaded
        if ROOT in self.groups or not self._is_open():
            reason = f"{self._device} is for root alone; give it to a group (Debian: kvm), mode 660"
            return Verdict(trial=trial, kvm=False, reason=reason), False
        with tempfile.NamedTemporaryFile(prefix="gantry-probe-") as program_file:
            program_file.write(boot_sector())
            program_file.flush()
            os.fchmod(program_file.fileno(), 0o644)
            probe = commands.probe(program, Accelerator.KVM, program_file.name)
            # As a guest runs, so that whatever a guest may not do is found out here.
            command = run_as(NOBODY, self.groups, probe) if os.geteuid() == ROOT else probe
            try:
                await execute(*command, timeout_s=WAIT_S)
            except CommandFailed as error:
                status = error.detail.get("status")
                if status == commands.PROBE_PASSED:
                    return Verdict(trial=trial, kvm=True, reason=""), True
                reason = "QEMU starts with it, but a test program in 64-bit mode fails"
                return Verdict(trial=trial, kvm=False, reason=reason), status is not None
        return Verdict(trial=trial, kvm=False, reason="the test program ended early"), True

    def _is_open(self) -> bool:
        mode = self._device.stat().st_mode
        return any(mode & both == both for both in (_BOTH_GROUP, _BOTH_OTHERS))

    def _read(self) -> Verdict | None:
        try:
            return from_json(self._record.read_bytes(), Verdict, what=str(self._record))
        except (OSError, InvalidRequest):
            return None


def _trial(program: str) -> str:
    """Name what a verdict is about: this boot of the node, and this build of QEMU."""
    boot = BOOT_ID.read_text(encoding="ascii").strip()
    try:
        changed_ns = Path(program).stat().st_mtime_ns
    except OSError:
        changed_ns = 0
    return f"{boot} {program} {changed_ns}"
