"""Have one step of a recipe fail."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from common.errors import NodeFailure
from coordinator.operations.step import Action, Step


def broken_at(
    steps: Iterator[Step],
    title: str,
    takes_effect: bool,
    then: Callable[[], None] = lambda: None,
) -> Iterator[Step]:
    """Have one step fail."""
    for step in steps:
        if step.title != title:
            yield step
        elif step.do:
            yield dataclasses.replace(step, do=_failing(step.do if takes_effect else None, then))
        else:
            yield dataclasses.replace(step, edit=_refusing)


def _failing(first: Action | None, then: Callable[[], None]) -> Action:
    async def do() -> None:
        if first is not None:
            await first()
        then()
        raise NodeFailure("Injected into a step.")

    return do


def _refusing(_: Any) -> Any:
    raise NodeFailure("Injected into an edit.")
