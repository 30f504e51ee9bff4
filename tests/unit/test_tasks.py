"""What is said of tasks that fail while nobody waits for them, and what waiting does to them."""

import asyncio

import pytest

from common.errors import GntError, NodeFailure
from common.tasks import Background, unharmed
from tests.support.clock import simulate


@pytest.mark.parametrize(
    ("error", "has_traceback"),
    [(NodeFailure("There is no lvm."), False), (KeyError("some key"), True)],
)
def test_a_failure_that_was_foreseen_is_a_sentence_in_the_log(
    error: Exception, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def failing() -> None:
        raise error

    async def story() -> None:
        task = Background().start(failing(), name="space of xenvg")
        await asyncio.wait([task])
        assert task.exception() is error

    simulate(story())
    (record,) = caplog.records
    assert bool(record.exc_info) is has_traceback
    assert isinstance(error, GntError) is (error.args[0] in record.getMessage())


def test_what_is_waited_for_goes_on_when_who_waits_is_cancelled() -> None:
    async def work() -> int:
        await asyncio.sleep(2)
        return 7

    async def story() -> None:
        doing = asyncio.ensure_future(work())
        hurried, patient = (asyncio.ensure_future(unharmed(doing)) for _ in range(2))
        await asyncio.sleep(1)
        hurried.cancel()
        assert await patient == await unharmed(doing) == 7
        assert hurried.cancelled()

    simulate(story())


def test_who_waits_hears_of_a_failure_and_of_an_end() -> None:
    async def failing() -> None:
        await asyncio.sleep(1)
        raise KeyError("some key")

    async def story() -> None:
        with pytest.raises(KeyError, match="some key"):
            await unharmed(asyncio.ensure_future(failing()))
        ending = asyncio.ensure_future(failing())
        waiting = asyncio.ensure_future(unharmed(ending))
        await asyncio.sleep(0.5)
        ending.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()

    simulate(story())


def test_a_failure_of_what_nobody_waits_for_any_more_is_no_complaint() -> None:
    async def failing() -> None:
        await asyncio.sleep(1)
        raise KeyError("some key")

    async def story() -> None:
        doing = asyncio.ensure_future(failing())
        waiting = asyncio.ensure_future(unharmed(doing))
        await asyncio.sleep(0.5)
        waiting.cancel()
        await asyncio.wait([doing])  # else the simulation would say that nobody looked at it

    simulate(story())
