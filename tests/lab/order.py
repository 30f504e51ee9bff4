"""Jobs that are watched from the side while they are carried out."""

import logging
import subprocess

from tests.lab.stage import Stage, said, until

OPEN = ("queued", "waiting", "running", "canceling")
LONGEST_S = 400  # that a job may take, on a machine with much else to do

log = logging.getLogger(__name__)


class Order:
    """A command whose job is followed; the coordinator may be killed while it is under way.

    What it says arrives at once, so that a story can strike while a step is under way.
    """

    def __init__(self, stage: Stage, command: str) -> None:
        self._stage = stage
        line = f"timeout {LONGEST_S} gnt-instance {command} --print-jobid 2>&1"
        log.info("%s# %s", stage.alpha.name, line)
        self._follower = subprocess.Popen(
            (*stage.alpha.shell(), line),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.number = int(self._hear())

    @property
    def status(self) -> str:
        """How it is; empty while there is no coordinator to be asked."""
        words = said(self._stage.alpha, f"gnt-job list --no-headers -o status {self.number}")
        return words.split()[0] if "exit 0" in words else ""

    @property
    def steps(self) -> list[str]:
        """What it has begun."""
        told = said(self._stage.alpha, f"gnt-job info {self.number}")
        return [line.partition(" * ")[2] for line in told.splitlines() if " * " in line]

    def reaches(self, step: str) -> None:
        """Wait until it has begun a step."""
        while told := self._hear():
            if told.partition(" * ")[2].startswith(step):
                return
        raise AssertionError(f"Job {self.number} has ended without “{step} …”")

    def ends(self) -> str:
        """Wait until it has ended; return how."""
        while self._hear():
            pass
        self._follower.communicate()
        status = self.status
        assert status not in (*OPEN, ""), f"job {self.number} has not ended in {LONGEST_S} s"
        return status

    def cancel(self) -> None:
        said(self._stage.alpha, f"gnt-job cancel {self.number}")

    def kill_coordinator_at_every_step(self) -> int:
        """Kill the coordinator whenever another step has begun; return how often."""
        kill = "systemctl kill --kill-whom=main --signal=KILL gantry-coordinator"
        killed_at: set[int] = set()

        def has_ended() -> bool:
            if (steps := len(self.steps)) > max(killed_at, default=0):
                killed_at.add(steps)
                self._stage.alpha.run(kill)
            return self.status not in (*OPEN, "")

        until(has_ended, f"job {self.number} to end", seconds=LONGEST_S)
        return len(killed_at)

    def _hear(self) -> str:
        """Return the next line that it says; empty when it has said all."""
        assert self._follower.stdout
        told = self._follower.stdout.readline()
        log.info("%s", told.rstrip())
        return told
