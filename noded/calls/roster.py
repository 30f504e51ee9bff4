"""Whose orders this node takes, on disk."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.messages import from_json, to_json
from common.names import KeyId, NodeName
from common.noderpc.roster import HeldRoster, Revocations, Roster
from common.revoked_keys import RevokedKeys
from common.tls.context import Peer
from noded.calls.revoked import RevokedFile
from noded.durable_file import read_durably, read_if_there, remove_durably, write_durably
from noded.system.threads import in_thread


class KnownCandidates:
    """The newest roster that a master published to this node.

    The keys that it revokes are in a file of their own, which is not written anew for each of them.
    """

    def __init__(self, path: Path, revoked: Path, names: Path) -> None:
        """Begin with the roster on disk.

        Args:
            path: of its file.
            revoked: of the file with revoked keys.
            names: of the candidates, one a line, as ssconf has them: where there is no file,
                as after an upgrade from a version without rosters, they count whatever their
                keys, until the master publishes.

        Raises:
            NodeFailure: the file is damaged.
        """
        self._path, self._names = path, names
        self._writing = asyncio.Lock()
        self._revoked = RevokedFile(revoked)
        self.roster = self._load()
        if self.roster.revoked:  # an older version has written the file last, with all in it
            self._revoked.begin(RevokedKeys(self.roster.revoked))
        self.on_change: Callable[[], None] = lambda: None

    def includes(self, peer: Peer) -> bool:
        """Tell whether ``peer`` is a candidate, by name and key."""
        is_of_any_key = self.roster.candidates.get(peer.node) == ""  # it is not known yet
        return self._lists(peer) or (is_of_any_key and peer.key not in self.revoked)

    def has_revoked(self, peer: Peer) -> bool:
        """Tell whether ``peer`` shows the certificate of a node that was removed."""
        return peer.key in self.revoked and not self._lists(peer)

    @property
    def revoked(self) -> RevokedKeys:
        return self._revoked.list

    @property
    def held(self) -> HeldRoster:
        """What is in force, as it is told."""
        roster = self.roster
        return HeldRoster(
            epoch=roster.epoch,
            serial=roster.serial,
            candidates=roster.candidates,
            following=roster.following,
            revoked=self.revoked.held,
        )

    async def update(self, roster: Roster, revocations: Revocations) -> None:
        """Use a newer roster from now on, durably; an older one changes nothing.

        Of its revoked keys as many as are missing may be told; if that is not enough, those that
        are known stay revoked. One of the same age is the same, and may tell more of them.

        Raises:
            NodeFailure: the disk is full or broken; what could not be written is not in force.
        """
        async with self._writing:
            if roster.age >= self.roster.age:
                await self._use(roster, self.revoked.made(revocations) or self.revoked)

    async def replace(self, roster: Roster) -> None:
        """Use a newer roster with all of its revoked keys; an older one changes nothing.

        Raises:
            NodeFailure: the disk is full or broken; the old roster stays in force.
        """
        async with self._writing:
            if roster.age > self.roster.age:
                await self._use(roster, RevokedKeys(roster.revoked))

    async def begin(self, roster: Roster) -> None:
        """Use the first roster of a cluster that this node joins; what it had was another's."""
        async with self._writing:
            await self._use(roster, RevokedKeys(roster.revoked))

    async def forget(self) -> None:
        """Obey nobody: the node has left its cluster."""
        async with self._writing:
            await in_thread(remove_durably, self._path)
            self.roster = Roster()
            await in_thread(self._revoked.remove)

    def _lists(self, peer: Peer) -> bool:
        key = self.roster.candidates.get(peer.node)
        return key is not None and peer.key in (key, self.roster.following.get(peer.node))

    async def _use(self, roster: Roster, revoked: RevokedKeys) -> None:
        await in_thread(self._write, roster, revoked)
        self.on_change()

    def _write(self, roster: Roster, revoked: RevokedKeys) -> None:
        # Keys first: whoever finds them in the roster takes that for an older version's.
        self._revoked.write(revoked)
        brief = replace(roster, revoked=())
        if brief != self.roster:
            write_durably(self._path, to_json(brief))
            self.roster = brief

    def _load(self) -> Roster:
        if (text := read_durably(self._path)) is None:
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
        names = (read_if_there(self._names) or b"").decode().split()
        return Roster(candidates={NodeName(name): KeyId("") for name in names})
