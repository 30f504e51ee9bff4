"""Ask several nodes at the same time."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from typing import TypeVar

from common.errors import Bug, GntError

K = TypeVar("K")
T = TypeVar("T")

log = logging.getLogger(__name__)


async def each(calls: Mapping[K, Awaitable[T]]) -> dict[K, T | GntError]:
    """Await all ``calls`` at once; return an answer or an error for each, never raise.

    An exception that nobody expected becomes a Bug. Cancellation ends all calls.
    """
    async with asyncio.TaskGroup() as group:
        tasks = {key: group.create_task(_outcome(call)) for key, call in calls.items()}
    return {key: task.result() for key, task in tasks.items()}


def split(outcomes: Mapping[K, T | GntError]) -> tuple[dict[K, T], dict[K, GntError]]:
    """Tell apart who answered and who failed."""
    answers: dict[K, T] = {}
    errors: dict[K, GntError] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, GntError):
            errors[key] = outcome
        else:
            answers[key] = outcome
    return answers, errors


async def _outcome(call: Awaitable[T]) -> T | GntError:
    try:
        return await call
    except GntError as error:
        return error
    except Exception as error:
        log.exception("a call failed unexpectedly")
        return Bug(f"An internal error: {type(error).__name__}: {error}.")
