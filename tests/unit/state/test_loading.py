"""Reading the state back gives what was committed."""

import msgspec
import pytest

from common.errors import Conflict, InvalidRequest
from common.model.secret import Secret
from common.model.stamp import Stamp
from common.names import Epoch, NodeId, NodeName
from common.noderpc.replica import Page
from coordinator.state import loading
from coordinator.state.loading import load
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.store import Store
from tests.support.candidates import Candidates, initialise, instance, job, running
from tests.support.clock import simulate
from tests.support.replicas import MemoryReplica, put, row


def test_a_successor_loads_the_same_state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "PAGE_ROWS", 3)

    async def story() -> None:
        candidates = Candidates("alpha", "beta", "gamma")
        store = Store(
            await initialise(candidates, ("alpha", "beta", "gamma")), Epoch(2), candidates.dial(2)
        )
        async with running(store):
            for number in range(1, 8):
                name = f"web{number}"
                await store.commit(
                    [Put(instance(name, "beta")), Put(job(number, {"made": [name, 1.5, None]}))]
                )
            await store.commit([Put(Secret(id="authority-key", value="PEM"))])
        loaded = await load(candidates.replicas[NodeName("alpha")])
        assert loaded.state == store.state
        assert len(loaded.state.config.instances_on(NodeId("beta"))) == 7
        assert loaded.state.newest_job == 7

    simulate(story())


def test_recent_commits_spare_a_copy() -> None:
    async def story() -> None:
        candidates = Candidates("alpha", "beta", "gamma")
        for replica in candidates.replicas.values():
            replica._kept = 1000
        state = await initialise(candidates, ("alpha", "beta", "gamma"))
        store = Store(state, Epoch(2), candidates.dial(2))
        async with running(store):
            candidates.silent |= {"gamma"}
            await store.commit([Put(job(1))])
        candidates.silent.clear()
        loaded = await load(candidates.replicas[NodeName("alpha")])
        assert loaded.recent[-1].stamp == loaded.state.stamp
        store = Store(loaded.state, Epoch(3), candidates.dial(3), recent=loaded.recent)
        behind = candidates.replicas[NodeName("gamma")]
        async with running(store):
            candidates.silent |= {"beta"}
            await store.commit([Put(job(2))])
        assert behind.at == store.state.stamp
        assert behind.commits  # a whole copy would have emptied this

    simulate(story())


def test_an_empty_replica_is_the_empty_state() -> None:
    assert simulate(load(MemoryReplica())).state == State()


class _Restless(MemoryReplica):
    async def read(self, *, after: tuple[str, str] | None, limit: int) -> Page:
        self.at = Stamp(epoch=Epoch(1), serial=self.at.serial + 1, digest="")  # type: ignore[arg-type]
        rows = (row(("secret", str(self.at.serial)), b'{"id":"a","value":"b"}'),)
        return Page(stamp=self.at, rows=rows, more=True)


def test_a_state_that_changes_all_the_time_is_told() -> None:
    with pytest.raises(Conflict, match="another coordinator is at work"):
        simulate(load(_Restless()))


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        ("spaceship", {}, "unknown kind “spaceship”"),
        ("instance", {"uuid": "7"}, "row instance 7 cannot be read"),
        ("job", "x", "row job 7 cannot be read"),
    ],
)
def test_a_row_that_does_not_fit_is_named(kind: str, value: object, message: str) -> None:
    replica = MemoryReplica()
    change = put(kind, "7", value)
    replica.rows[kind, "7"] = bytes(msgspec.Raw(change.body))
    with pytest.raises(InvalidRequest, match=message):
        simulate(load(replica))
