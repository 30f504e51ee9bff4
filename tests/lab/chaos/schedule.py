"""What is going to happen, decided by a seed alone: orders and troubles, round by round.

A round has one trouble that takes a node, a link or a disk away, small ones that take a process or
the time of day, and orders meanwhile. Two great ones at once would lose data that nothing can
keep: a link, and within the minute the node whose guest wrote on alone (ADR 70).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

ROUND_S = 40.0  # of trouble; peace follows
ORDERS = 5
SMALL = 2
GUESTS = ("web0", "web1", "web2", "web3")
MIRRORED = frozenset({"web0", "web1", "web3"})  # when they are added; that may change
CLOCK_STEPS_S = (-300, -30, 30, 300)


class What(Enum):
    """A trouble, in the words of who reads of it: of one node, or of one towards another."""

    POWER = "{0} loses its power"
    GIVEN_UP = "{0} loses its power and is given up: its instances fail over"
    BOTH = "{0} and {1} lose their power"
    FREEZE = "{0} stops in its tracks"
    CUT = "nothing passes between {0} and {1}"
    CUT_ONE_WAY = "nothing passes from {0} to {1}"
    SLOW = "what {0} sends is late, and some of it is lost"
    DISK = "every access below the volume group of {0} fails"
    KILL_NODED = "the node daemon of {0} is killed"
    KILL_COORDINATOR = "the coordinator is killed, wherever it is"
    KILL_GUEST = "the QEMU of {0} is killed, wherever it is"
    CLOCK = "the clock of {0} jumps by {1} s"


GREAT = (
    What.POWER, What.GIVEN_UP, What.BOTH, What.FREEZE, What.CUT, What.CUT_ONE_WAY, What.SLOW,
    What.DISK,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Trouble:
    what: What
    of: tuple[str, ...] = ()
    seconds: float = 0.0  # until it ends

    def __str__(self) -> str:
        ends = f", for {self.seconds:.0f} s" if self.seconds else ""
        return self.what.value.format(*self.of) + ends


@dataclass(frozen=True, slots=True)
class Order:
    """What an operator types on the master."""

    line: str

    def __str__(self) -> str:
        return self.line


@dataclass(frozen=True, slots=True)
class Event:
    at_s: float  # since the round began
    what: Trouble | Order


def rounds(seed: int, nodes: Sequence[str]) -> Iterator[tuple[Event, ...]]:
    """Yield one round after the other, without end; every great trouble comes before one again."""
    random = Random(seed)
    while True:
        for great in random.sample(GREAT, len(GREAT)):
            yield _round(random, great, nodes)


def _round(random: Random, great: What, nodes: Sequence[str]) -> tuple[Event, ...]:
    events = [
        Event(random.uniform(2, ROUND_S / 3), _great(random, great, nodes)),
        *(Event(random.uniform(0, ROUND_S), _small(random, nodes)) for _ in range(SMALL)),
        *(Event(random.uniform(0, ROUND_S * 0.8), _order(random, nodes)) for _ in range(ORDERS)),
    ]
    return tuple(sorted(events, key=lambda event: event.at_s))


def _great(random: Random, what: What, nodes: Sequence[str]) -> Trouble:
    one, other = random.sample(nodes, 2)
    of = (one, other) if what in (What.BOTH, What.CUT, What.CUT_ONE_WAY) else (one,)
    return Trouble(what, of, random.uniform(5, ROUND_S / 2))


def _small(random: Random, nodes: Sequence[str]) -> Trouble:
    node, guest = random.choice(nodes), random.choice(GUESTS)
    return random.choice(
        (
            Trouble(What.KILL_NODED, (node,)),
            Trouble(What.KILL_COORDINATOR),
            Trouble(What.KILL_GUEST, (guest,)),
            Trouble(What.CLOCK, (node, f"{random.choice(CLOCK_STEPS_S):+d}")),
        )
    )


def _order(random: Random, nodes: Sequence[str]) -> Order:
    name, node = random.choice(GUESTS), random.choice(nodes)
    instance = "gnt-instance"
    make: tuple[Callable[[], str], ...] = (
        lambda: f"{instance} migrate --force {name}",
        lambda: f"{instance} migrate --force {name}",
        lambda: f"{instance} failover --force --shutdown-timeout 5 {name}",
        lambda: f"{instance} failover --force --shutdown-timeout 5 -n {node} {name}",
        lambda: f"{instance} replace-disks -p {name}",
        lambda: f"{instance} replace-disks -s {name}",
        lambda: f"{instance} replace-disks -n {node} {name}",
        lambda: f"{instance} grow-disk {name} 0 {random.choice((4, 8))}M",
        lambda: f"{instance} modify --disk add:size=8M --hotplug {name}",
        lambda: f"{instance} modify --force --disk 1:remove --hotplug {name}",
        lambda: f"{instance} shutdown --timeout 5 {name}",
        lambda: f"{instance} startup {name}",
        lambda: f"{instance} reboot --shutdown-timeout 5 {name}",
        lambda: f"{instance} remove --force --shutdown-timeout 0 {name}",
        lambda: f"{instance} move --force --shutdown-timeout 5 -n {node} {name}",
        lambda: _conversion(random, name, node),
        lambda: (
            f"gnt-backup export -n {node} --shutdown-timeout 5 {name} && gnt-backup remove {name}"
        ),
        lambda: f"gnt-node evacuate --force --secondary-only {node}",
        lambda: f"gnt-node migrate --force {node}",
        lambda: "gnt-cluster verify-disks",
    )
    return Order(random.choice(make)())


def _conversion(random: Random, name: str, node: str) -> str:
    to = random.choice(("plain", f"drbd -n {node}"))
    return (
        f"gnt-instance shutdown --timeout 5 {name} && gnt-instance modify --force -t {to} {name}; "
        f"gnt-instance startup {name}"
    )


def adding(name: str, kernel: str) -> str:
    """Return the order that adds a guest, which counts and writes."""
    template = "drbd" if name in MIRRORED else "plain"
    nics = "--net 0:link=br0" if name == GUESTS[0] else "--no-nics"
    return (
        f"gnt-instance add -t {template} --disk 0:size=8M -B memory=128,vcpus=1 {nics} "
        f"-H kvm:kernel_path={kernel} {name}"
    )
