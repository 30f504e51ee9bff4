"""Jobs that are watched from the side while they are carried out."""

import re

from tests.lab.stage import Stage, said, until

OPEN = ("queued", "waiting", "running", "canceling")


class Order:
    """A job that was submitted; the coordinator may be killed while it is under way."""

    def __init__(self, stage: Stage, command: str) -> None:
        self._stage = stage
        number = re.search(r"JobID: (\d+)", said(stage.alpha, f"gnt-instance {command}"))
        assert number
        self.number = int(number[1])

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
        until(lambda: any(each.startswith(step) for each in self.steps), f"“{step} …”")

    def ends(self, seconds: float = 240.0) -> str:
        """Wait until it has ended; return how."""
        until(lambda: self.status not in (*OPEN, ""), f"job {self.number} to end", seconds)
        return self.status

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

        until(has_ended, f"job {self.number} to end", seconds=400)
        return len(killed_at)
