"""Keys that open nothing any more, as changes of the state: a row each."""

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from common.errors import Conflict
from common.model.revoked_key import RevokedKey
from common.names import KeyId
from coordinator.state.config import Config
from coordinator.state.kinds import REVOKED_KEY
from coordinator.state.rows import Delete, Put, Update

MOST_REVOKED = 10_000  # keys that are kept: they fit into one call, with all else in it
FOR_REMOVALS = 2_000  # of those: a new authority needs all nodes, so who is broken has to go first


def check_room(config: Config, *, is_removal: bool = False) -> None:
    """Refuse to revoke more keys than nodes can be told of; none is ever forgotten for another.

    Raises:
        Conflict: says what makes room.
    """
    most = MOST_REVOKED if is_removal else MOST_REVOKED - FOR_REMOVALS
    count = len(config.revoked.keys)
    if count >= most:
        raise Conflict(
            f"{count} keys are revoked, and nodes keep {most} at most for this. What is forgotten "
            "would open the cluster again: have “gnt-cluster renew-crypto "
            "--new-cluster-certificate” begin the list anew, and give the command again."
        )


def revoke(config: Config, *keys: KeyId) -> Iterator[Update]:
    """Have keys be on the list, at its end unless they are on it; empty ones are none."""
    out = [key for key in dict.fromkeys(keys) if key and key not in config.revoked]
    if not out:
        return
    yield from _in_rows(config)
    begin = 1 + max((row.number for row in config.table(REVOKED_KEY).values()), default=0)
    for number, key in enumerate(out, begin):
        yield Put(RevokedKey(id=key, number=number))


def allow_again(config: Config, keys: Collection[KeyId]) -> Iterator[Update]:
    """Take keys off the list, as if they had never been on it; others stay in their order."""
    yield from _in_rows(config)
    for key in keys:
        if key:
            yield Delete(RevokedKey(id=key, number=0))


def _in_rows(config: Config) -> Iterator[Update]:
    """Move what an older version has kept with the cluster itself, before all that came after."""
    former = config.cluster.revoked_keys
    if former:
        yield Put(replace(config.cluster, revoked_keys=()))
        for number, key in enumerate(former):
            yield Put(RevokedKey(id=key, number=number - len(former)))
