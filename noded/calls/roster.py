"""Whose orders this node takes, on disk."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from common.errors import InvalidRequest, NodeFailure
from common.messages import from_json, to_json
from common.names import KeyId, NodeName
from common.noderpc.roster import Roster
from common.tls.context import Peer
from noded.durable_file import explaining, remove_durably, write_durably
from noded.system.threads import in_thread


class KnownCandidates:
    """The newest roster that a master published to this node."""

    def __init__(self, path: Path, names: Path) -> None:
        """Begin with the roster on disk.

        Args:
            path: of its file.
            names: of the candidates, one a line, as ssconf has them: where there is no file,
                as after an upgrade from a version without rosters, they count whatever their
                keys, until the master publishes.

        Raises:
            NodeFailure: the file is damaged.
        """
        self._path, self._names = path, names
        self._writing = asyncio.Lock()
        self.roster = self._load()
        self.on_change: Callable[[], None] = lambda: None

    def includes(self, peer: Peer) -> bool:
        """Tell whether ``peer`` is a candidate, by name and key."""
        key = self.roster.candidates.get(peer.node)
        return key is not None and peer.key in (
            key or peer.key,
            self.roster.following.get(peer.node),
        )

    def has_revoked(self, peer: Peer) -> bool:
        """Tell whether ``peer`` shows the certificate of a node that was removed."""
        return peer.key in self.roster.revoked and not self.includes(peer)

    async def replace(self, roster: Roster) -> None:
        """Use a newer roster from now on, durably; an older one changes nothing.

        Raises:
            NodeFailure: the disk is full or broken; the old roster stays in force.
        """
        async with self._writing:
            if roster.age > self.roster.age:
                await self._use(roster)

    async def begin(self, roster: Roster) -> None:
        """Use the first roster of a cluster that this node joins; what it had was another's."""
        async with self._writing:
            await self._use(roster)

    async def forget(self) -> None:
        """Obey nobody: the node has left its cluster."""
        async with self._writing:
            await in_thread(remove_durably, self._path)
            self.roster = Roster()

    async def _use(self, roster: Roster) -> None:
        await in_thread(write_durably, self._path, to_json(roster))
        self.roster = roster
        self.on_change()

    def _load(self) -> Roster:
        with explaining(f"read {self._path}"):
            try:
                text = self._path.read_bytes()
            except FileNotFoundError:
                return self._of_names()
        try:
            return from_json(text, Roster, what=str(self._path))
        except InvalidRequest as error:
            raise NodeFailure(
                f"The file {self._path} is damaged, so this node does not know whose orders to "
                "take. Copy the same file from another node of the cluster, and start it again.",
                path=str(self._path),
            ) from error

    def _of_names(self) -> Roster:
        with explaining(f"read {self._names}"):
            try:
                names = self._names.read_text(encoding="utf-8").split()
            except FileNotFoundError:
                return Roster()
        return Roster(candidates={NodeName(name): KeyId("") for name in names})
