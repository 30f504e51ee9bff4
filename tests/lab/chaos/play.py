"""``deploy/lab chaos``: play what the schedule says, and look at everything after each round."""

import itertools
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from deploy.uml import cluster
from deploy.uml.command import Trouble as LabTrouble
from deploy.uml.lab import Lab
from deploy.uml.place import SHARED
from tests.lab.chaos.ear import Ears
from tests.lab.chaos.inspection import inspect
from tests.lab.chaos.levers import Levers
from tests.lab.chaos.operators import Operator, Unsettled
from tests.lab.chaos.record import Record
from tests.lab.chaos.schedule import GUESTS, Event, Order, Trouble, What, adding, rounds
from tests.support.tiny_guest import kernel

KERNEL = "chaos.kernel"
AT_ONCE = 4
ORDERS_S = 300.0


class Chaos:
    """One run on one lab."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self._lab, self._began = lab, time.monotonic()
        self._names = [node.name for node in lab.nodes()]
        self._rounds = rounds(seed, self._names)
        self._levers = Levers(lab)
        self._operator = Operator(lab, self.say)
        self._numbers = itertools.count(1)  # of orders
        self._ears = Ears(lab.nodes(), Record())

    def say(self, text: str) -> None:
        """Print a line, and when it was."""
        now_s = time.monotonic() - self._began
        print(f"{now_s:6.1f} {text}\n", end="", flush=True)  # in one piece

    def rage(self, minutes: float) -> list[str]:
        """Play rounds for so long; return what was wrong at the end of the last one."""
        until = self._began + minutes * 60
        number, wrong = 0, list[str]()
        with self._ears:
            self._add_guests()
            while time.monotonic() < until and not wrong:
                number += 1
                self.say(f"── round {number}")
                wrong = self._play(next(self._rounds))
        self.say(f"{number} rounds")
        return wrong

    def _play(self, events: tuple[Event, ...]) -> list[str]:
        """Play one round; return what is wrong when nothing is broken any more."""
        given: list[Future[None]] = []
        with ThreadPoolExecutor(AT_ONCE) as operators:
            self._unfold(events, operators, given)
            self.say("peace")
            self._levers.mend()
            wait(given, ORDERS_S)
        try:
            master = self._operator.settle()
            wrong = inspect(self._lab, master, self._ears)
            self._add_guests()
        except Unsettled as error:
            wrong = [str(error), *self._ears.lost()]
        told = sum(self._ears.told().values())
        self.say(f"{'wrong' if wrong else 'all is well'}; guests have told {told} numbers")
        return wrong

    def _unfold(
        self, events: tuple[Event, ...], operators: ThreadPoolExecutor, given: list[Future[None]]
    ) -> None:
        """Make troubles and end them, and have orders given, each at its time."""
        began = time.monotonic()
        ahead: list[tuple[float, bool, Trouble | Order]] = [
            *((event.at_s, True, event.what) for event in events),
            *(
                (event.at_s + event.what.seconds, False, event.what)
                for event in events
                if isinstance(event.what, Trouble) and event.what.seconds
            ),
        ]
        for at_s, begins, what in sorted(ahead, key=lambda each: each[0]):
            time.sleep(max(0.0, began + at_s - time.monotonic()))
            if isinstance(what, Order):
                given.append(operators.submit(self._order, what))
            elif begins:
                self.say(f"! {what}")
                self._try(lambda: self._levers.make(what))  # noqa: B023 -- called at once
                if what.what is What.GIVEN_UP:
                    given.append(operators.submit(self._operator.give_up, what.of[0]))
            else:
                self.say(f"! over: {what}")
                self._try(lambda: self._levers.end(what))  # noqa: B023 -- called at once

    def _order(self, order: Order) -> None:
        number = next(self._numbers)
        self.say(f"#{number} {order}")
        self.say(f"#{number}   {self._operator.order(order.line)}")

    def _try(self, do: Callable[[], None]) -> None:
        """Do something to nodes that may not be well enough for it."""
        try:
            do()
        except LabTrouble as error:
            self.say(f"  in vain: {error}")

    def _add_guests(self) -> None:
        """Have all guests that are spoken of, those that were removed as well."""
        names = self._operator.instances()
        missing = [name for name in GUESTS if name not in names]
        with ThreadPoolExecutor(AT_ONCE) as operators:
            orders = [Order(adding(name, f"{SHARED}/{KERNEL}")) for name in missing]
            list(operators.map(self._order, orders))


def play(lab: Lab, *, nodes: int, seed: int, minutes: float) -> list[str]:
    """Have a cluster in the lab, and chaos in it; return what is wrong, in sentences.

    Raises:
        Trouble: of the lab, which does not get well.
    """
    print(f"seed {seed}, {minutes:g} minutes", flush=True)
    cluster.form(lab.up(nodes, print), print)
    (lab.place.shared / KERNEL).write_bytes(kernel())
    return Chaos(lab, seed).rage(minutes)
