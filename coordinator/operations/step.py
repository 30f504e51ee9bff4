"""One line of a recipe."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace

from common.errors import Cancelled, GntError
from coordinator.state.rows import Update
from coordinator.state.state import State

Action = Callable[[], Awaitable[object]]
Edit = Callable[[State], Iterable[Update]]


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a recipe: an action on nodes, an edit of the state, or first one, then the other.

    Actions state a wish rather than a change ("the disk is open", "the disk is closed"), so
    either may run twice, and ``undo`` is harmless when ``do`` never happened or only half
    happened. Edits become durable together with the journal's word that the step is done;
    ``undo_edit``, which tells what ``undo`` has found, with the word that it is undone.
    """

    title: str  # shown to the operator, unique in its recipe: "open the disks on beta"
    do: Action | None = None
    undo: Action | None = None
    edit: Edit | None = None
    unedit: Edit | None = None
    undo_edit: Edit | None = None
    point_of_no_return: bool = False  # once done, this and earlier steps stay done


def act(title: str, do: Action, undo: Action | None = None) -> Step:
    """Make a step that asks a node for something."""
    return Step(title, do=do, undo=undo)


def record(
    title: str, edit: Edit, undo: Edit | None = None, *, point_of_no_return: bool = False
) -> Step:
    """Make a step that changes the configuration."""
    return Step(title, edit=edit, unedit=undo, point_of_no_return=point_of_no_return)


def saying(step: Step, words: str) -> Step:
    """Return a step that says what an operator is to do if its action fails."""
    act_plainly = step.do
    assert act_plainly

    async def do() -> None:
        try:
            await act_plainly()
        except Cancelled:
            raise
        except GntError as error:
            raise type(error)(f"{error.message} {words}", **error.detail) from error

    return replace(step, do=do)
