"""The fence, in virtual time, over a real file."""

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from common.errors import Conflict, Deposed, NodeFailure
from common.names import Epoch, NodeName
from common.noderpc.mastership import REACH
from noded.calls.fence import PATIENCE_S, EpochFence
from noded.calls.grants import Grant, GrantFile
from tests.support.clock import simulate

ALPHA, BETA = NodeName("alpha"), NodeName("beta")


def epoch(number: int) -> Epoch:
    return Epoch(number)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "mastership.json"


def fence_at(path: Path) -> EpochFence:
    return EpochFence(GrantFile(path))


def test_a_grant_survives_a_restart(path: Path) -> None:
    simulate(fence_at(path).advance(epoch(3), ALPHA))
    assert fence_at(path).grant == Grant(epoch=epoch(3), master=ALPHA)


def test_a_node_that_never_granted_obeys_epoch_zero(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.admit(epoch(0), ALPHA)
        assert fence.grant == Grant()

    simulate(scenario())


def test_an_epoch_is_granted_once(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.advance(epoch(3), ALPHA)
        await fence.advance(epoch(3), ALPHA)
        with pytest.raises(Deposed, match="granted to alpha, not to beta"):
            await fence.advance(epoch(3), BETA)
        with pytest.raises(Deposed, match="obeys alpha"):
            await fence.advance(epoch(2), BETA)
        assert fence.grant == Grant(epoch=epoch(3), master=ALPHA)

    simulate(scenario())


def test_orders_of_an_epoch_are_taken_from_its_master_alone(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.advance(epoch(3), ALPHA)
        await fence.admit(epoch(3), ALPHA)
        with pytest.raises(Deposed, match="Epoch 3 is alpha's here, not beta's"):
            await fence.admit(epoch(3), BETA)
        assert fence.grant.master == ALPHA

    simulate(scenario())


def test_two_who_ask_at_once_cannot_both_get_it(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        answers = await asyncio.gather(  # noqa: TID251 -- both failures are wanted
            *(fence.advance(epoch(5), node) for node in (ALPHA, BETA)), return_exceptions=True
        )
        assert [type(answer) for answer in answers].count(Deposed) == 1

    simulate(scenario())


def test_a_start_asks_whether_it_is_named(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        with pytest.raises(Deposed, match="nobody yet, not alpha"):
            await fence.advance(epoch(1), ALPHA, only_if_named=True)
        await fence.advance(epoch(1), ALPHA)
        await fence.advance(epoch(2), ALPHA, only_if_named=True)
        await fence.advance(epoch(2), ALPHA, only_if_named=True)  # an answer was lost
        with pytest.raises(Deposed, match="alpha, not beta") as caught:
            await fence.advance(epoch(3), BETA, only_if_named=True)
        assert caught.value.detail == {"epoch": 2, "master": "alpha"}
        assert fence.grant.epoch == 2

    simulate(scenario())


def test_a_grant_without_an_order_names_whom_the_node_obeyed(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.admit(epoch(3), ALPHA)
        await fence.advance(epoch(4), BETA)
        for each in (fence, fence_at(path)):
            assert (each.grant.named, each.grant.master) == (ALPHA, BETA)
            with pytest.raises(Deposed):
                await each.admit(epoch(3), ALPHA)
        await fence.advance(epoch(5), BETA, only_if_named=True)
        await fence.advance(epoch(6), ALPHA, only_if_named=True)  # nothing became of beta's
        await fence.advance(epoch(7), BETA)
        await fence.admit(epoch(7), BETA)
        with pytest.raises(Deposed, match="master is beta, not alpha"):
            await fence_at(path).advance(epoch(8), ALPHA, only_if_named=True)
        assert fence_at(path).grant == Grant(epoch=epoch(7), master=BETA)

    simulate(scenario())


def test_a_used_grant_is_written_as_versions_before_can_read_it(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.admit(epoch(3), ALPHA)
        await fence.advance(epoch(4), BETA)
        await fence.admit(epoch(4), BETA)

    simulate(scenario())
    assert path.read_text() == '{"epoch":4,"master":"beta"}'


def test_an_order_is_carried_out_only_once_its_master_is_named_on_disk(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        file = GrantFile(path)
        fence = EpochFence(file)
        await fence.admit(epoch(3), ALPHA)
        await fence.advance(epoch(4), BETA)

        async def full(_: Grant) -> None:
            raise NodeFailure("Cannot write it: the disk is full.")

        monkeypatch.setattr(file, "save", full)
        with pytest.raises(NodeFailure, match="disk is full"):
            await fence.admit(epoch(4), BETA)
        assert fence.grant.named == ALPHA

    simulate(scenario())


def test_an_epoch_that_no_counting_led_to_is_not_granted(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.advance(epoch(3), ALPHA)
        with pytest.raises(Conflict, match="out of all proportion"):
            await fence.advance(epoch(4 + REACH), BETA)
        with pytest.raises(Conflict, match="out of all proportion"):
            await fence.admit(epoch(2**53), BETA)
        assert fence.grant == fence_at(path).grant == Grant(epoch=epoch(3), master=ALPHA)
        await fence.advance(epoch(3 + REACH), BETA)

    simulate(scenario())


def test_what_the_replica_remembers_bounds_a_lost_grant(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        fence.recall(epoch(6))
        with pytest.raises(Deposed, match="epoch 5 is over"):
            await fence.admit(epoch(5), ALPHA)
        for master in (ALPHA, BETA):
            with pytest.raises(Deposed):
                await fence.advance(epoch(6), master)
        assert fence.grant.named is None
        await fence.admit(epoch(6), BETA)
        assert fence_at(path).grant == Grant(epoch=epoch(6), master=BETA)

    simulate(scenario())


def test_a_later_grant_is_told_at_once_to_who_watches(path: Path) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        fence = fence_at(path)
        await fence.advance(epoch(3), ALPHA)
        loop.call_later(4, lambda: granting.append(loop.create_task(fence.advance(epoch(4), BETA))))
        granting: list[asyncio.Task[None]] = []
        await fence.granted_after(epoch(2), 30)
        assert loop.time() == 0
        await fence.granted_after(epoch(3), 30)
        assert loop.time() == 4
        await fence.granted_after(epoch(4), 30)
        assert loop.time() == 34
        loop.call_later(1, fence.stop_watching)
        await fence.granted_after(epoch(4), 30)
        assert loop.time() == 35

    simulate(scenario())


def test_an_older_order_is_refused_and_told_who_is_master(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.advance(epoch(8), BETA)
        with pytest.raises(Deposed, match="obeys beta, master since epoch 8") as caught:
            await fence.admit(epoch(7), ALPHA)
        assert caught.value.detail == {"epoch": 8, "master": "beta"}
        await fence.admit(epoch(8), BETA)

    simulate(scenario())


def test_a_higher_epoch_is_learnt_from_an_order_and_kept(path: Path) -> None:
    simulate(fence_at(path).admit(epoch(9), BETA))
    assert fence_at(path).grant == Grant(epoch=epoch(9), master=BETA)


def test_a_grant_waits_for_older_orders(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        loop = asyncio.get_running_loop()

        async def order() -> None:
            with fence.hold(epoch(0), "disks.ensure_present"):
                await asyncio.sleep(3)

        async with asyncio.TaskGroup() as group:
            group.create_task(order())
            await asyncio.sleep(1)
            await fence.advance(epoch(1), ALPHA)
            assert loop.time() == 3
            with pytest.raises(Deposed):
                fence.hold(epoch(0), "too late").__enter__()

    simulate(scenario())


class FewLooks(asyncio.Event):
    """Who waits for it again and again, and is never held up, fails and does not go on for ever."""

    def __init__(self) -> None:
        super().__init__()
        self.left = 10

    async def wait(self) -> Literal[True]:
        self.left -= 1
        assert self.left, "it looks again and again, and lets nobody else go on"
        return await super().wait()


def test_a_grant_that_waits_lets_others_go_on_though_an_order_has_ended_before(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        fence._one_ended = FewLooks()
        with fence.hold(epoch(0), "facts.facts"):
            pass

        async def order() -> None:
            with fence.hold(epoch(0), "disks.ensure_present"):
                await asyncio.sleep(3)

        async with asyncio.TaskGroup() as group:
            group.create_task(order())
            await asyncio.sleep(1)
            await fence.advance(epoch(1), ALPHA)
            assert asyncio.get_running_loop().time() == 3

    simulate(scenario())


def test_orders_of_the_same_epoch_do_not_delay_a_repeated_grant(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.advance(epoch(1), ALPHA)
        with fence.hold(epoch(1), "instances.ensure_running"):
            await fence.advance(epoch(1), ALPHA)
        assert asyncio.get_running_loop().time() == 0

    simulate(scenario())


def test_an_order_that_does_not_end_is_named_and_the_grant_holds(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        with fence.hold(epoch(0), "disks.ensure_present"):
            with pytest.raises(NodeFailure, match=r"disks\.ensure_present for 8 s.*Ask again"):
                await fence.advance(epoch(1), ALPHA)
            assert asyncio.get_running_loop().time() == PATIENCE_S
            with pytest.raises(Deposed):
                await fence.admit(epoch(0), BETA)
        await fence.advance(epoch(1), ALPHA)  # asked again

    simulate(scenario())


def test_a_grant_that_cannot_be_stored_is_not_given(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        file = GrantFile(path)
        fence = EpochFence(file)

        async def full(_: Grant) -> None:
            raise NodeFailure("Cannot write it: the disk is full.")

        monkeypatch.setattr(file, "save", full)
        with pytest.raises(NodeFailure, match="disk is full"):
            await fence.advance(epoch(1), ALPHA)
        assert fence.grant == Grant()
        await fence.admit(epoch(0), BETA)

    simulate(scenario())


def test_leaving_a_cluster_forgets_its_master(path: Path) -> None:
    async def scenario() -> None:
        fence = fence_at(path)
        await fence.advance(epoch(8), BETA)
        await fence.forget()
        await fence.forget()
        assert fence.grant == fence_at(path).grant == Grant()

    simulate(scenario())


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "{}", '{"epoch":7}', '{"epoch":0,"master":"alpha"}', '{"epoch":"7"}', "\xff",
     '{"epoch":7,"master":"alpha","more":1}', '{"epoch":9223372036854775807,"master":"alpha"}'],
)  # fmt: skip
def test_a_damaged_file_is_named_and_never_guessed(path: Path, text: str) -> None:
    path.write_text(text, encoding="latin-1")
    with pytest.raises(NodeFailure, match="damaged") as caught:
        fence_at(path)
    assert str(path) in caught.value.message
    assert path.read_text(encoding="latin-1") == text
