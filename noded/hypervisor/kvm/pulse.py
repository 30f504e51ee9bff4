"""Which QEMUs do not answer, since when, and how long each is still waited for.

The first question to one that hangs takes as long as it takes to be sure. From then on nobody
waits for it: it is asked in the background until it answers or is gone.
"""

import asyncio

from common.names import InstanceId
from common.tasks import Background
from noded.hypervisor.kvm.home import Home
from noded.hypervisor.kvm.monitor import Silent, monitor

LIST_S = 3.0  # of patience of who lists guests with one that has answered so far
ORDER_S = 10.0  # of patience of who is going to act on the answer
AGAIN_S = 0.5  # of patience of the latter with one that is known to hang
ASK_EVERY_S = 1.0


class Pulses:
    """Knows those of all guests of a node."""

    def __init__(self, background: Background) -> None:
        self._background = background
        self._silent: dict[InstanceId, float] = {}  # since when, by the loop's clock

    def silent_s(self, instance: InstanceId) -> float:
        """Return for how long a guest has not answered; 0 for one that does."""
        since = self._silent.get(instance)
        return 0.0 if since is None else asyncio.get_running_loop().time() - since

    def patience_s(self, instance: InstanceId, *, listing: bool) -> float:
        """Return how long to wait for a guest's answer; 0 means not to ask at all."""
        if instance not in self._silent:
            return LIST_S if listing else ORDER_S
        return 0.0 if listing else AGAIN_S

    def heard(self, instance: InstanceId) -> None:
        """Take note that a guest has answered."""
        self._silent.pop(instance, None)

    def missed(self, home: Home, waited_s: float) -> None:
        """Take note that a guest whose process is there has not answered; keep asking it."""
        if home.instance not in self._silent:
            self._silent[home.instance] = asyncio.get_running_loop().time() - waited_s
            self._background.start(self._ask(home), name=f"ask the silent {home.instance}")

    async def _ask(self, home: Home) -> None:
        while home.instance in self._silent:
            found = home.process()
            if found is None:
                break
            with found:
                try:
                    async with monitor(home.qmp_socket, home.instance) as session:
                        await session.ask("query-status")
                        break
                except Silent:
                    await asyncio.sleep(ASK_EVERY_S)
        self.heard(home.instance)
