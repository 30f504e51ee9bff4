"""Run a recipe: do the steps in order; if one fails, undo them in reverse."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from common.errors import Bug, Cancelled, GntError, Stuck, Unreachable
from coordinator.operations.step import Action, Edit, Step

INSISTENCE_S = 60.0  # with a node that cannot be reached, where there is no other way
PAUSE_S = 2.0


class Journal(Protocol):
    """What has happened so far to an operation.

    ``note`` may keep an entry back until the next ``write``: an action that was done but
    not noted is done once more after a crash, which its wish allows.
    """

    @property
    def failure(self) -> GntError | None:
        """Why the operation is being undone, or None while it goes forward."""

    def has(self, event: str, step: str) -> bool: ...

    def note(self, event: str, step: str) -> None:
        """Add an entry that the next write takes along."""

    async def write(self, event: str, step: str, edit: Edit | None = None) -> None:
        """Make an entry, all noted ones and an edit of the state durable, all or none."""

    async def fail(self, failure: GntError) -> None:
        """Make it durable that from here on the way is back."""

    def check_not_cancelled(self) -> None:
        """Raise Cancelled when the operator wants the operation to end."""

    def tell(self, message: str) -> None:
        """Say something to whoever watches."""


async def run(steps: Iterable[Step], journal: Journal) -> None:
    """Finish every step, or leave the cluster as if none had begun.

    A coordinator that takes over a half-done job, forward or undoing, calls this again with
    the same journal. That is why cancellation of the task (shutdown, lost mastership)
    undoes nothing; the operator's wish to cancel arrives through the journal instead.

    Raises:
        GntError: what the failing step raised; all is undone by then.
        Cancelled: the operator wanted it to end, be it during the last step.
        Stuck: a step failed, and then an undo.
    """
    begun: list[Step] = []
    titles: set[str] = set()
    no_return = False
    for step in steps:
        if step.title in titles:  # the journal goes by them
            if not journal.failure:
                await journal.fail(Bug(f"Two steps of a recipe are called “{step.title}”."))
            break
        titles.add(step.title)
        touched = journal.has("started", step.title) or journal.has("finished", step.title)
        if journal.failure and not touched:
            break
        begun.append(step)  # even if it fails halfway, it is undone
        if not journal.failure and not journal.has("finished", step.title):
            try:
                await _forward(step, journal, no_return=no_return)
            except Exception as error:  # noqa: BLE001 -- kept in the journal, raised below
                await journal.fail(error if isinstance(error, GntError) else Bug(repr(error)))
                break
        if step.point_of_no_return and journal.has("finished", step.title):
            begun.clear()
            no_return = True
    if not journal.failure:
        try:
            journal.check_not_cancelled()
        except Cancelled as error:
            await journal.fail(error)
    if journal.failure:
        await _back(begun, journal)
        raise journal.failure


async def _forward(step: Step, journal: Journal, *, no_return: bool) -> None:
    has_begun = journal.has("started", step.title)
    if not (has_begun and step.point_of_no_return):
        journal.check_not_cancelled()  # else it may be passed already: doing it again finds out
    if step.do:
        if not has_begun:
            await journal.write("started", step.title)
        await (_insist(step.do, f"“{step.title}”", journal) if no_return else step.do())
    if step.edit or step.point_of_no_return:
        await journal.write("finished", step.title, step.edit)
    else:
        journal.note("finished", step.title)


async def _back(begun: list[Step], journal: Journal) -> None:
    for step in reversed(begun):
        if journal.has("undone", step.title):
            continue
        try:
            edited = step.unedit and journal.has("finished", step.title)
            if edited and not journal.has("unedited", step.title):
                await journal.write("unedited", step.title, step.unedit)
            if step.undo:
                await _insist(step.undo, f"Undoing “{step.title}”", journal)
        except Exception as error:
            raise Stuck(
                f"Cannot undo “{step.title}”: {error} The operation was being undone because: "
                f"{journal.failure} Mend the cause, then look at what is left."
            ) from error
        if step.undo:
            # At once, so that whoever goes on does not undo this again when what came before it
            # is undone, too: it would look for a guest whose disk is gone.
            await journal.write("undone", step.title, step.undo_edit)
        else:
            journal.note("undone", step.title)


async def _insist(action: Action, what: str, journal: Journal) -> None:
    """Do what there is no way around, again and again while a node cannot be reached.

    Mostly its noded is being restarted, and back in a moment.
    """
    loop = asyncio.get_running_loop()
    limit = loop.time() + INSISTENCE_S
    told = False
    while True:
        try:
            await action()
        except Unreachable as error:
            if error.detail.get("offline") or loop.time() >= limit:
                raise
            if not told:
                told = True
                journal.tell(f"{what} is tried again for {INSISTENCE_S:g} s: {error}")
            await asyncio.sleep(PAUSE_S)
        else:
            return
