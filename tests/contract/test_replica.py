"""What a replica promises, of the real one and of the one in memory that simulations use."""

from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.errors import Conflict, InvalidRequest
from common.model.commit import Change, Commit, next_commit
from common.model.stamp import Stamp
from common.names import Epoch, Serial
from common.noderpc.replica import Behind, Diverged, Replica
from noded.handlers.replica import ReplicaHandlers
from tests.support.clock import simulate
from tests.support.replicas import (
    MemoryReplica,
    Tell,
    all_rows,
    carry_out,
    delete,
    history,
    put,
    row,
    telling,
)


@pytest.fixture(params=["memory", "sqlite"])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    return telling(request.param, tmp_path)


COMMITS = history(20, Random(1))
FORK = history(3, Random(2), after=COMMITS[9].stamp, epoch=1)


def test_a_new_replica_is_empty(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        assert await replica.stamp() == Stamp()
        assert await replica.append(commits=()) == Stamp()
        assert await all_rows(replica) == {}
        assert await replica.commits_after(serial=Serial(0)) == ()

    tell(story)


def test_commits_become_rows(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        expected: dict[tuple[str, str], bytes] = {}
        for commit in COMMITS:
            assert await replica.append(commits=(commit,)) == commit.stamp
            carry_out(expected, commit)
            assert await all_rows(replica) == expected
        assert await replica.stamp() == COMMITS[-1].stamp

    tell(story)


def test_many_commits_in_one_call_are_the_same(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        model = MemoryReplica()
        for commit in COMMITS:
            await model.append(commits=(commit,))
        assert await replica.append(commits=COMMITS) == COMMITS[-1].stamp
        assert await all_rows(replica) == model.rows

    tell(story)


def test_commits_that_are_there_are_skipped(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=COMMITS[:10])
        assert await replica.append(commits=COMMITS[3:7]) == COMMITS[9].stamp
        assert await replica.append(commits=COMMITS[5:]) == COMMITS[-1].stamp

    tell(story)


def test_a_gap_is_refused_with_the_serial_it_has(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=COMMITS[:5])
        with pytest.raises(Behind) as refused:
            await replica.append(commits=COMMITS[7:])
        assert refused.value.detail["serial"] == 5
        assert await replica.stamp() == COMMITS[4].stamp

    tell(story)


@pytest.mark.parametrize(
    "commits",
    [FORK, COMMITS[8:10] + FORK, FORK[:1]],
    ids=["another branch", "a branch from what is there", "one commit of it"],
)
def test_another_history_is_refused_as_a_whole(commits: tuple[Commit, ...], tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=COMMITS[:11])
        before = await all_rows(replica)
        with pytest.raises(Diverged):
            await replica.append(commits=commits)
        assert await replica.stamp() == COMMITS[10].stamp
        assert await all_rows(replica) == before

    tell(story)


def test_a_row_altered_on_the_way_is_refused(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        change = put("node", "1", {"name": "mallory"})
        forged = msgspec.structs.replace(COMMITS[1], changes=(change,))
        with pytest.raises(Diverged):
            await replica.append(commits=(COMMITS[0], forged))
        assert await replica.stamp() == Stamp()

    tell(story)


def test_an_older_epoch_does_not_follow(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        newer = next_commit(Stamp(), Epoch(5), (put("node", "1", 1),))
        older = next_commit(newer.stamp, Epoch(4), (put("node", "1", 2),))
        await replica.append(commits=(newer,))
        with pytest.raises(Diverged):
            await replica.append(commits=(older,))

    tell(story)


def test_kept_commits_are_given_out(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=COMMITS)
        assert await replica.commits_after(serial=Serial(12)) == COMMITS[12:]
        assert await replica.commits_after(serial=Serial(20)) == ()
        assert await replica.commits_after(serial=Serial(99)) == ()

    tell(story)


def test_old_commits_are_dropped(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        at, commits = Stamp(), []
        for number in range(1200):
            commits.append(next_commit(at, Epoch(1), (put("job", str(number), number),)))
            at = commits[-1].stamp
        await replica.append(commits=tuple(commits))
        with pytest.raises(Behind):
            await replica.commits_after(serial=Serial(199))
        assert len(await replica.commits_after(serial=Serial(200))) == 1000
        with pytest.raises(Diverged):  # what it cannot compare, it does not call the same
            await replica.append(commits=tuple(commits[:3]))

    tell(story)


def test_a_whole_copy_takes_effect_with_its_last_part(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=FORK[:0] + COMMITS[:3])
        before = await all_rows(replica)
        becomes = Stamp(epoch=Epoch(7), serial=Serial(99), digest="ab" * 32)
        parts = [(row(("job", str(n)), b'{"n":1}'),) for n in (3, 11, 2)]
        await replica.restore(copy="a", rows=parts[0], first=True, becomes=None)
        await replica.restore(copy="a", rows=parts[1], first=False, becomes=None)
        await replica.restore(copy="a", rows=parts[1], first=False, becomes=None)
        assert (await all_rows(replica), await replica.stamp()) == (before, COMMITS[2].stamp)
        await replica.restore(copy="a", rows=parts[2], first=False, becomes=becomes)
        assert await replica.stamp() == becomes
        assert list(await all_rows(replica)) == [("job", "11"), ("job", "2"), ("job", "3")]
        with pytest.raises(Behind):
            await replica.commits_after(serial=Serial(2))
        following = next_commit(becomes, Epoch(7), (delete("job", "3"),))
        assert await replica.append(commits=(following,)) == following.stamp

    tell(story)


def test_commits_go_on_while_a_copy_arrives(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=COMMITS[:3])
        await replica.restore(copy="a", rows=(), first=True, becomes=None)
        assert await replica.append(commits=COMMITS[3:5]) == COMMITS[4].stamp
        await replica.restore(copy="a", rows=(), first=False, becomes=COMMITS[6].stamp)
        assert await replica.append(commits=COMMITS[7:]) == COMMITS[-1].stamp

    tell(story)


def test_a_part_out_of_turn_is_refused(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        stamp = COMMITS[5].stamp
        with pytest.raises(Conflict):
            await replica.restore(copy="a", rows=(), first=False, becomes=None)
        await replica.restore(copy="a", rows=(), first=True, becomes=None)
        await replica.restore(copy="b", rows=(), first=True, becomes=None)
        with pytest.raises(Conflict):
            await replica.restore(copy="a", rows=(), first=False, becomes=stamp)
        await replica.restore(copy="b", rows=(), first=False, becomes=stamp)
        with pytest.raises(Conflict):
            await replica.restore(copy="b", rows=(), first=False, becomes=Stamp())
        assert await replica.stamp() == stamp

    tell(story)


def test_an_erased_replica_is_a_new_one(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        await replica.append(commits=COMMITS)
        await replica.erase()
        await replica.erase()
        assert await replica.stamp() == Stamp()
        assert await all_rows(replica) == {}
        assert await replica.append(commits=COMMITS) == COMMITS[-1].stamp

    tell(story)


def test_rows_may_be_large_and_deep(tell: Tell) -> None:
    deep = b"[" * 150 + b"]" * 150
    large = b'"' + b"x" * 3_000_000 + b'"'

    async def story(replica: Replica) -> None:
        changes = (
            Change(kind="job", id="1", body=msgspec.Raw(deep)),
            Change(kind="job", id="2", body=msgspec.Raw(large)),
            Change(kind="job", id="3", body=msgspec.Raw(large)),
        )
        commit = next_commit(Stamp(), Epoch(1), changes)
        await replica.append(commits=(commit,))
        assert [bytes(r) for r in (await all_rows(replica)).values()] == [deep, large, large]
        assert await replica.commits_after(serial=Serial(0)) == (commit,)

    tell(story)


def test_a_page_has_at_least_one_row(tell: Tell) -> None:
    async def story(replica: Replica) -> None:
        with pytest.raises(InvalidRequest):
            await replica.read(after=None, limit=0)

    tell(story)


_orders = st.lists(
    st.tuples(st.sampled_from(["append", "fork", "copy", "erase"]), st.integers(0, 19)),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(_orders)
def test_the_file_does_what_the_model_does(
    tmp_path_factory: pytest.TempPathFactory, orders: list[tuple[str, int]]
) -> None:
    async def carry(replica: Replica, what: str, start: int) -> str:
        try:
            match what:
                case "append":
                    return repr(await replica.append(commits=COMMITS[start : start + 6]))
                case "fork":
                    return repr(await replica.append(commits=COMMITS[start:10] + FORK))
                case "copy":
                    model = MemoryReplica()
                    await model.append(commits=COMMITS[:start])
                    rows = tuple(row(key, body) for key, body in model.rows.items())
                    await replica.restore(copy="x", rows=rows, first=True, becomes=model.at)
                case _:
                    await replica.erase()
        except Conflict as error:
            return type(error).__name__
        return "done"

    async def story() -> None:
        real = ReplicaHandlers(tmp_path_factory.mktemp("replica") / "state.sqlite")
        model = MemoryReplica()
        for what, start in orders:
            assert await carry(real, what, start) == await carry(model, what, start)
            assert await real.stamp() == await model.stamp()
            assert await all_rows(real, 100) == model.rows
        await real.close()

    simulate(story())
