"""The process that runs a script: ``python -P -m noded.operating_systems.worker HOME DESCRIPTOR``.

The script gets names of processes and of mounts that are its own. When it ends, however it ends,
what it has left running is killed and what it has left mounted is not mounted any more: a chroot
that it was working in holds no disk. It outlives noded, and never outlives this process.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from common.messages import from_json, to_json
from noded.copies.ending import KeptEnding
from noded.operating_systems.confine import command_line
from noded.operating_systems.durable import make_durable
from noded.operating_systems.estimate import Estimate
from noded.operating_systems.held import Held
from noded.operating_systems.home import Result
from noded.operating_systems.masking import Mask
from noded.operating_systems.orders import Task
from noded.operating_systems.output import keep
from noded.operating_systems.sandbox import sandboxed
from noded.operating_systems.turns import take_turn

MEET_S = 900.0  # for a copy; who would begin it may be gone, and disks are claimed meanwhile
AGAIN_S = 1.0  # between signals that the time for meeting is over
GRACE_S = 10  # to clear up, for a script that is told to end
LARGEST_TASK = 4 << 20


def main() -> None:
    descriptor = int(sys.argv[2])
    task = from_json(os.pread(descriptor, LARGEST_TASK, 0), Task, what="what to run")
    os.close(descriptor)
    ending = KeptEnding(task.ending) if task.ending else None  # before anybody meets its stream
    # Before a signal waits for anything: nobody may ever come to the other end.
    reads = meet(task.reads, os.O_RDONLY) if task.reads else None
    writes = meet(task.writes, os.O_WRONLY) if task.writes else None
    if task.sandbox:  # after that: who is at the other end knows that somebody is there
        take_turn(task.turn, task.log)  # until this process ends
    _Worker(task, reads, writes).run(ending)


def meet(stream: str, access: int, patience_s: float = MEET_S) -> int:
    """Open a pipe when somebody opens its other end; nobody comes to it after that.

    Raises:
        TimeoutError: nobody has come.
    """

    def give_up(*_: Any) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)  # what is done on the way out is done whole
        raise TimeoutError("nobody has come to the other end of its stream")

    before = signal.signal(signal.SIGALRM, give_up)
    # Again and again: a signal just before the kernel waits does not end the wait.
    signal.setitimer(signal.ITIMER_REAL, patience_s, min(patience_s, AGAIN_S))
    try:
        return os.open(stream, access | os.O_CLOEXEC)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        Path(stream).unlink()


class _Worker:
    def __init__(self, task: Task, reads: int | None, writes: int | None) -> None:
        self._task = task
        self._was_stopped = False
        self._held = Held(task.paths if task.sandbox else ())
        estimate = Estimate(task.estimate) if task.estimate else None
        # It is begun before anything can be told to end: a signal that comes first waits for that.
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
        self._script = subprocess.Popen(
            _argv(task, self._held),
            stdin=subprocess.DEVNULL if reads is None else reads,
            stdout=subprocess.PIPE if writes is None else writes,
            stderr=subprocess.STDOUT if writes is None else subprocess.PIPE,
            cwd=task.directory,
            env={**task.environment, **(estimate.environment if estimate else {})},
            pass_fds=estimate.descriptors if estimate else (),
            start_new_session=True,
            restore_signals=True,
            preexec_fn=_unblock,  # noqa: PLW1509 -- there is one thread
        )
        for stream in filter(None, (reads, writes)):  # which end with the script
            os.close(stream)
        if estimate:
            estimate.listen()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGALRM, self._kill)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))

    def run(self, ending: KeptEnding | None) -> None:
        said = self._script.stdout or self._script.stderr
        assert said
        keep(said, self._task.log, Mask(self._task.secrets))
        status = self._script.wait()
        self._held.let_go()
        if self._task.reads and not status:  # who has sent it may delete it as soon as that is told
            status = make_durable(self._task.disks, self._task.log)
        unfinished = Path(f"{self._task.result}.new")
        unfinished.write_bytes(to_json(Result(status=status, was_stopped=self._was_stopped)))
        unfinished.replace(self._task.result)
        if ending:
            ending.tell(status)

    def _stop(self, *_: Any) -> None:
        """Have the script clear up, which is killed if it takes its time."""
        self._was_stopped = True
        self._signal(signal.SIGTERM)
        signal.alarm(GRACE_S)

    def _kill(self, *_: Any) -> None:
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if self._script.returncode is None:
            os.killpg(self._script.pid, number)


def _argv(task: Task, held: Held) -> tuple[str, ...]:
    if not task.sandbox:
        return command_line(task.argv)
    return sandboxed(task.argv, root=task.sandbox, definition=task.directory, disks=held.devices)


def _unblock() -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))


if __name__ == "__main__":
    main()
