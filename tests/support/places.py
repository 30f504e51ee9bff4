"""Choose at which calls and commits of a story it is disturbed, where time matters."""

from tests.support.network import Trip
from tests.support.seeds import is_quick, is_thorough

MANY = 4  # places of a story at which it is disturbed, beyond which not all are tried every day
EVERY = 4  # of such a story one in so many is tried, besides those that differ most


def worth_trying(trips: list[Trip]) -> list[int]:
    """Choose places for a disturbance: all, or where time matters those that differ.

    Of the calls of one commit it is now this and now that one, and of those that watch a task
    the first and the last.
    """
    commits, worth = 0, []
    for index, trip in enumerate(trips):
        around = {str(each) for each in trips[index - 1 : index + 2 : 2]}
        if trip.is_commit:
            commits += 1
            if commits % 3 != commits // 3 % 3:
                continue
        elif trip.call.name in ("tasks.watch", "os.look") and around == {str(trip)}:
            continue
        worth.append(index)
    return list(range(len(trips))) if is_thorough() else worth


def worth_crashing(trips: list[Trip]) -> list[int]:
    """Choose places for a crash: a look leaves nothing behind for whoever goes on."""
    worth = worth_trying(trips)
    if is_thorough():
        return worth
    return worth[:1] + [index for index in worth[1:] if not trips[index].call.looks]


def some(places: list[int], *, turn: int, final: range | None = None) -> list[int]:
    """Choose some places of a long story where time matters.

    The first and the last, those around the step from which there is no return, and every fourth,
    but in a hurry: which, its ``turn`` decides, so that each kind of place is met in one of the
    stories that are alike.
    """
    if is_thorough() or len(places) <= MANY:
        return places
    chosen = {places[0], places[-1]}
    if not is_quick():
        chosen |= {*places[turn % EVERY :: EVERY]}
    if final is not None:
        before = [place for place in places if place < final.start]
        within = [place for place in places if place in final]
        after = [place for place in places if place >= final.stop]
        chosen |= {*before[-1:], *within[:1], *within[-1:], *after[:1]}
    return sorted(chosen)
