"""Choose at which calls and commits of a story it is disturbed, where time matters."""

from tests.support.network import Trip
from tests.support.seeds import is_thorough

MANY = 8  # places of a story at which it is disturbed, beyond which not all are tried every day


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


def every_other(places: list[int], *, more_than: int = MANY) -> list[int]:
    """Leave out every other place of a long story where time matters: which, its length decides.

    What is between two places to crash at is mostly the same to whoever goes on; and stories that
    are alike differ in length.
    """
    if is_thorough() or len(places) <= more_than:
        return places
    return places[len(places) % 2 :: 2]
