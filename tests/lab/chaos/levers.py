"""What makes a trouble on real nodes, and what ends it."""

from collections.abc import Callable
from contextlib import suppress

from deploy.uml import command, faults, network
from deploy.uml.lab import Lab
from deploy.uml.node import Node
from tests.lab.chaos.schedule import Trouble, What

DELAY_MS, LOSS_PERCENT = 150, 3.0
KILL = "systemctl kill --kill-whom=main --signal=KILL {}"


class Levers:
    """Remembers what is broken, so that all of it can be mended."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._clocks: dict[str, int] = {}
        self._slow: set[str] = set()
        self._broken: set[str] = set()

    def make(self, trouble: Trouble) -> None:
        """Make it; what needs a node that is off just now makes nothing.

        Raises:
            Trouble: of the lab: a node does not do as it is told.
        """
        of = trouble.of
        match trouble.what:
            case What.POWER | What.GIVEN_UP | What.BOTH:
                for name in of:
                    self._lab.node(name).power_off()
            case What.FREEZE:
                self._if_on(of[0], Node.freeze)
            case What.CUT:
                self._cut(*of)
                self._cut(*reversed(of))
            case What.CUT_ONE_WAY:
                self._cut(*of)
            case What.SLOW:
                self._slow.add(of[0])
                self._if_on(
                    of[0],
                    lambda node: faults.slow(node, delay_ms=DELAY_MS, loss_percent=LOSS_PERCENT),
                )
            case What.DISK:
                self._broken.add(of[0])
                self._if_on(of[0], faults.break_disk)
            case What.KILL_NODED:
                self._if_on(of[0], lambda node: node.run(KILL.format("gantry-noded")))
            case What.KILL_COORDINATOR:
                self._everywhere(f"{KILL.format('gantry-coordinator')}; true")
            case What.KILL_GUEST:
                self._everywhere(f"pkill -9 -f '^/[u]sr/bin/qemu.* guest={of[0]},'; true")
            case What.CLOCK:
                self._if_on(of[0], lambda node: self._shift(node, int(of[1])))

    def end(self, trouble: Trouble) -> None:
        """End it as far as that is done without people: a node stays off until it is started."""
        match trouble.what:
            case What.POWER | What.GIVEN_UP | What.BOTH:
                self.power_on()
            case What.FREEZE:
                with suppress(command.Trouble):  # it has been powered off
                    self._lab.node(trouble.of[0]).thaw()
            case What.CUT | What.CUT_ONE_WAY:
                network.heal(self._lab.place)
            case What.SLOW:
                self._quicken()
            case What.DISK:
                self._mend_disks()
            case _:
                pass

    def mend(self) -> None:
        """End all troubles; return when all nodes are up."""
        network.heal(self._lab.place)
        for node in self._lab.nodes():
            if node.state == "frozen":
                node.thaw()
        self.power_on()
        self._quicken()
        self._mend_disks()
        for name, seconds in self._clocks.items():
            faults.shift_clock(self._lab.node(name), -seconds)
        self._clocks.clear()

    def power_on(self) -> None:
        off = {node.name for node in self._lab.nodes() if node.state == "off"}
        self._slow -= off  # a node starts without
        self._broken -= off
        for name in off & self._clocks.keys():
            del self._clocks[name]
        if any(node.state == "frozen" for node in self._lab.nodes()):
            return
        self._lab.up(len(self._lab.nodes()), lambda _: None)

    def _quicken(self) -> None:
        for name in sorted(self._slow):
            self._if_on(name, lambda node: faults.slow(node, delay_ms=0, loss_percent=0))
        self._slow.clear()

    def _mend_disks(self) -> None:
        for name in sorted(self._broken):
            self._if_on(name, faults.mend_disk)
        self._broken.clear()

    def _cut(self, one: str, other: str) -> None:
        network.cut(self._lab.place, self._lab.node(one).spot, self._lab.node(other).spot)

    def _shift(self, node: Node, seconds: int) -> None:
        faults.shift_clock(node, seconds)
        self._clocks[node.name] = self._clocks.get(node.name, 0) + seconds

    def _if_on(self, name: str, do: Callable[[Node], object]) -> None:
        node = self._lab.node(name)
        if node.state == "on":
            do(node)

    def _everywhere(self, line: str) -> None:
        for node in self._lab.nodes():
            if node.state == "on":
                node.run(line)
