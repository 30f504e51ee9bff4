"""Bytes that go to a cluster's nodes when a key is revoked, or a node goes out of service.

Each case is counted twice: for nodes that are told what changed, and for those of an older version
which are told everything. Processor time is the coordinator's, with what it takes to write the
bodies of the calls; that of nodes is shown beside it, for one of them.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec.structs import replace

from common.errors import NotFound
from common.messages import to_json
from common.model.cluster import Cluster
from common.model.group import Group
from common.model.node import Node
from common.names import (
    ClusterId,
    ClusterName,
    Epoch,
    GroupId,
    GroupName,
    KeyId,
    NodeId,
    NodeName,
    Serial,
)
from common.noderpc.roster import HeldRoster, Revocations, Roster, Rosters
from common.revoked_keys import RevokedKeys
from coordinator.master.publisher import changed
from coordinator.operations.node.revoking import revoke
from coordinator.operations.node.roster import Knows, publish
from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.rows import Put, settle
from coordinator.state.state import State

CANDIDATES = 10
AWAY_FOR = 500  # revocations
ANSWER = 79  # bytes that a node says of a file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--revoked", type=int, default=9999)
    options = parser.parse_args()
    state = cluster_of(options.nodes, options.revoked)
    print(f"{options.nodes} nodes, {options.revoked} revoked keys")
    print(f"{'':34} {'bytes':>14} {'a node':>9} {'calls':>6} {'cpu':>8} {'a node':>9}")
    of_rosters(state, options.nodes)
    of_a_commit(state)
    of_files(state, options.nodes)


def of_rosters(state: State, count: int) -> None:
    keys = state.config.revoked.keys
    after = state.apply(revoke(state.config, KeyId("f" * 64)))
    for title, had, seen, is_older in (
        ("a key, told whole (before)", keys, after, True),
        ("a key", keys, after, False),
        ("a new master, told whole (before)", keys, state, True),
        ("a new master", keys, state, False),
        (f"all away for {AWAY_FOR}", keys[:-AWAY_FOR], state, False),
        ("all have another list", keys[::-1], state, False),
    ):
        told = [Counting(RevokedKeys(had), is_older=is_older) for _ in range(count)]
        asked = [partial_of(node, seen) for node in told]
        seconds = seconds_of(asked)
        of_nodes = sum(node.seconds for node in told)
        calls = sum(node.told for node in told)
        size = sum(node.bytes for node in told)
        show(title, size, count, calls, (seconds - of_nodes, of_nodes / count))


def of_a_commit(state: State) -> None:
    """Show what each candidate is sent, and writes."""
    keys = (*state.config.revoked.keys, KeyId("f" * 64))
    before = [Put(replace(state.config.cluster, revoked_keys=keys))]
    for title, updates in (
        ("its commit, in one row (before)", before),
        ("its commit", list(revoke(state.config, keys[-1]))),
    ):
        size = sum(len(to_json(settle(update)[1])) for update in updates)
        show(title, size * CANDIDATES, CANDIDATES, CANDIDATES)


def of_files(state: State, count: int) -> None:
    node = state.config.sorted_nodes()[-1]
    files = ssconf_files(state.config)
    after = ssconf_files(state.apply([Put(replace(node, offline=True))]).config)
    for title, told in (
        ("ssconf, node offline (before)", after),
        ("ssconf, node offline", changed(files, after)),
        ("ssconf, new master (before)", files),
        ("ssconf, new master", changed(files, files)),
    ):
        asked = len(to_json({"names": list(files)})) + len(files) * ANSWER
        size = len(to_json({"files": told})) + (asked if title == "ssconf, new master" else 0)
        show(title, size * count, count, count)


class Counting(Rosters):
    """A node that counts the bytes of questions and answers."""

    def __init__(self, had: RevokedKeys, *, is_older: bool) -> None:
        self._revoked, self._is_older = had, is_older
        self.bytes = self.told = 0
        self.seconds = 0.0

    async def update(self, *, roster: Roster, revocations: Revocations) -> HeldRoster:
        if self._is_older:
            raise NotFound("This node knows no such call.")
        begin = time.process_time()
        # As after a restart: a node that has just been told need not look at all keys for this.
        self._revoked = RevokedKeys(self._revoked.keys)
        self._revoked = self._revoked.made(revocations) or self._revoked
        self.seconds += time.process_time() - begin
        held = HeldRoster(
            epoch=roster.epoch,
            serial=roster.serial,
            candidates=roster.candidates,
            following=roster.following,
            revoked=self._revoked.held,
        )
        self._count({"roster": roster, "revocations": revocations}, held)
        return held

    async def publish(self, *, roster: Roster) -> None:
        self._count({"roster": roster}, None)

    async def held(self) -> HeldRoster:
        raise NotImplementedError

    async def show(self) -> Roster:
        raise NotImplementedError

    def _count(self, question: Any, answer: Any) -> None:
        self.told += 1
        self.bytes += len(to_json(question)) + len(to_json(answer))


def cluster_of(nodes: int, revoked: int) -> State:
    group = Group(uuid=GroupId("group"), name=GroupName("default"))
    every = [
        Node(
            uuid=NodeId(f"00000000-0000-4000-8000-{number:012x}"),
            name=NodeName(f"node{number:04}.example.com"), group=group.uuid,
            primary_ip=f"192.0.{number // 250}.{number % 250 + 1}",
            key=KeyId(f"{number + (1 << 200):064x}"), master_candidate=number < CANDIDATES,
        )
        for number in range(nodes)
    ]  # fmt: skip
    cluster = Cluster(
        uuid=ClusterId("cluster"), name=ClusterName("test"), master=every[0].uuid
    )  # fmt: skip
    state = State().apply(map(Put, (cluster, group, *every)))
    state = state.apply(revoke(state.config, *(KeyId(f"{n:064x}") for n in range(revoked))))
    return state.stamped(replace(state.stamp, epoch=Epoch(7), serial=Serial(123_456)))


def partial_of(node: Rosters, state: State) -> Callable[[], Coroutine[Any, Any, Knows]]:
    return lambda: publish(node, state)


def seconds_of(asked: Sequence[Callable[[], Coroutine[Any, Any, Knows]]]) -> float:
    """Return the processor time of this process for all of it, one after the other."""

    async def ask() -> None:
        for each in asked:
            await each()

    begin = time.process_time()
    asyncio.run(ask())
    return time.process_time() - begin


def show(
    title: str, size: int, nodes: int, calls: int, seconds: tuple[float, float] | None = None
) -> None:
    cpu = f"{seconds[0]:6.2f} s {seconds[1] * 1e3:6.2f} ms" if seconds else ""
    print(f"{title:34} {size:14,} {size // nodes:9,} {calls:6} {cpu}", flush=True)


if __name__ == "__main__":
    main()
