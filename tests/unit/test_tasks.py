"""What is said of tasks that fail while nobody waits for them."""

import asyncio

import pytest

from common.errors import GntError, NodeFailure
from common.tasks import Background
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
