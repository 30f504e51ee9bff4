"""A machine that exists in memory only."""

from common.names import MiB
from noded.machine.driver import Machine, MachineReport
from noded.machine.parse import Memory, Processors

TOTAL, OWN = MiB(65_536), MiB(1_024)


class FakeMachine(Machine):
    """``report`` is for scenarios to change."""

    def __init__(self, boot_id: str, *, total: MiB = TOTAL, own: MiB = OWN, cpus: int = 16) -> None:
        self.report = MachineReport(
            boot_id=boot_id,
            memory=Memory(total=total, available=MiB(total - own)),
            processors=Processors(cpus=cpus, sockets=1),
            memory_nodes=1,
            load=0.0,
        )

    def look(self) -> MachineReport:
        return self.report
