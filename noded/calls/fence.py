"""The epoch fence: once a master is granted, orders of those before it are refused.

It is what makes two coordinators harmless: however long an order was on its way, it cannot
be carried out after a later master was told that this node obeys it.
"""

import asyncio

from common.errors import Conflict, Deposed, NodeFailure
from common.names import Epoch, NodeName
from common.noderpc.mastership import REACH
from noded.calls.grants import Grant, GrantFile
from noded.system.patience import check_patience

PATIENCE_S = 8.0  # for calls of older epochs; less than the ten seconds a grant may take


class _Held:
    """An order that is carried out, as long as its block lasts."""

    __slots__ = ("_ended", "_running", "epoch", "since_s", "what")

    def __init__(
        self, epoch: Epoch, what: str, running: "list[_Held]", ended: asyncio.Event
    ) -> None:
        self.epoch, self.what = epoch, what
        self.since_s = asyncio.get_running_loop().time()
        self._running, self._ended = running, ended

    def __enter__(self) -> None:
        self._running.append(self)

    def __exit__(self, *_: object) -> None:
        self._running.remove(self)
        self._ended.set()  # for those who wait by now
        self._ended.clear()


class EpochFence:
    """Knows the newest grant and the fenced calls in flight."""

    def __init__(self, file: GrantFile) -> None:
        """Begin with the grant on disk.

        Raises:
            NodeFailure: the file is damaged.
        """
        self._file = file
        self._grant = file.load()
        self._granting = asyncio.Lock()
        self._running: list[_Held] = []  # oldest first
        self._one_ended = asyncio.Event()
        self._granted = asyncio.Event()
        self._closing = False

    @property
    def grant(self) -> Grant:
        """Return the newest grant; epoch 0 and no master if there never was one."""
        return self._grant

    async def advance(self, epoch: Epoch, master: NodeName, *, only_if_named: bool = False) -> None:
        """Obey nobody below ``epoch`` from now on, durably.

        Returns once the calls of older epochs have ended. The same again changes nothing.

        Args:
            epoch: the new one.
            master: who may give orders in it.
            only_if_named: refuse unless this master was obeyed last, or has the newest grant.

        Raises:
            Deposed: this epoch or a later one is another's, or another master is named.
            Conflict: the epoch is no number that counting could have led to.
            Expired: who asked gave up while another grant was stored.
            NodeFailure: it could not be stored, and nothing changed; or, though granted,
                older calls go on: ask again.
        """
        async with self._granting:
            check_patience()
            self.check(epoch)
            if epoch == self._grant.epoch and master != self._grant.master:
                raise Deposed(
                    f"Epoch {epoch} was granted to {self._grant.master}, not to {master}.",
                    epoch=epoch,
                    master=self._grant.master,
                )
            if only_if_named and master not in (self._grant.named, self._grant.master):
                raise Deposed(
                    f"This node's master is {self._grant.named or 'nobody yet'}, not {master}.",
                    epoch=self._grant.epoch,
                    master=self._grant.named,
                )
            if epoch > self._grant.epoch:
                await self._keep(self._grant.promising(epoch, master))
        await self._wait_for_older(epoch)

    async def admit(self, epoch: Epoch, caller: NodeName) -> None:
        """Check an order before anything else is done about it.

        A higher epoch than was granted here can only be that of a master whom a majority
        confirmed while this node was away: it is taken over, as if granted now. That the first
        order of an epoch came is kept before it is carried out: from then on it is this master
        whom the node names.

        Raises:
            Deposed: the epoch is older than the one granted, or was granted to another node
                (which takes two operators who each gave their word).
        """
        if epoch > self._grant.epoch:
            await self.advance(epoch, caller)
        self.check(epoch)
        if self._grant.master not in (None, caller):
            raise Deposed(
                f"Epoch {epoch} is {self._grant.master}'s here, not {caller}'s.",
                epoch=epoch,
                master=self._grant.master,
            )
        if epoch and self._grant.named != caller:
            async with self._granting:
                self.check(epoch)
                if self._grant.named != caller:
                    await self._keep(Grant(epoch=epoch, master=caller))

    def check(self, epoch: Epoch) -> None:
        """Refuse an epoch that is over.

        Raises:
            Deposed: it is; says who is master.
        """
        newest = self._grant
        if epoch < newest.epoch:
            raise Deposed(
                f"This node obeys {newest.master or 'a later master'}, master since epoch "
                f"{newest.epoch}; epoch {epoch} is over.",
                epoch=newest.epoch,
                master=newest.master,
            )

    async def granted_after(self, epoch: Epoch, patience_s: float) -> None:
        """Return when a later epoch has been granted, or patience is over."""
        try:
            async with asyncio.timeout(patience_s):
                while self._grant.epoch <= epoch and not self._closing:
                    await self._granted.wait()
        except TimeoutError:
            pass

    def stop_watching(self) -> None:
        """Have ``granted_after`` return at once, now and from now on: the daemon ends."""
        self._closing = True
        self._granted.set()

    def recall(self, epoch: Epoch) -> None:
        """Grant nothing up to ``epoch``: a replica holds its commits, though no grant is kept.

        Whose epoch that was is forgotten; so this node names nobody until the next order.
        """
        if self._grant.epoch < epoch:
            self._grant = Grant(epoch=epoch)

    def hold(self, epoch: Epoch, what: str) -> _Held:
        """Carry out an order; whoever advances the epoch meanwhile waits for its end.

        Raises:
            Deposed: the epoch advanced since the order was admitted.
        """
        self.check(epoch)
        return _Held(epoch, what, self._running, self._one_ended)

    async def forget(self) -> None:
        """Return to epoch 0: the node has left its cluster."""
        async with self._granting:
            await self._file.forget()
            self._grant = Grant()

    async def _keep(self, grant: Grant) -> None:
        """Make a grant durable, and only then go by it."""
        if grant.epoch > self._grant.epoch + REACH:
            raise Conflict(
                f"Epoch {grant.epoch} is out of all proportion to this node's, "
                f"{self._grant.epoch}; no counting can have led there. It is not granted.",
                epoch=self._grant.epoch,
            )
        await self._file.save(grant)
        self._grant = grant
        self._granted.set()
        self._granted = asyncio.Event()

    async def _wait_for_older(self, epoch: Epoch) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                while any(call.epoch < epoch for call in self._running):
                    await self._one_ended.wait()
        except TimeoutError as error:
            now_s = asyncio.get_running_loop().time()
            older = [call for call in self._running if call.epoch < epoch]
            told = ", ".join(f"{call.what} for {now_s - call.since_s:.0f} s" for call in older)
            raise NodeFailure(
                f"Epoch {epoch} is granted, but orders of an older one still run here: {told}. "
                "Ask again.",
                calls=[call.what for call in older],
            ) from error
