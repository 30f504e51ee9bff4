"""A replica keeps its newest commits: as many as there is room for, and always one."""

import pytest

from noded.replica import kept
from noded.replica.kept import KeptCommits, Size


@pytest.fixture(autouse=True)
def _little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEPT_COMMITS", 4)
    monkeypatch.setattr(kept, "KEPT_BYTES", 100)


@pytest.mark.parametrize(
    ("there", "new", "dropped"),
    [
        ((), (200,), 0),  # the newest one stays, however large
        ((10, 10), (10, 10), 0),
        ((10, 10, 10, 10), (10,), 1),
        ((10, 10), (10, 10, 10, 10, 10), 3),
        ((50, 30), (20,), 0),
        ((50, 30), (21,), 1),
        ((1, 50, 50), (50,), 2),
        ((10, 10), (100,), 2),
        ((10, 10), (10, 101), 3),
    ],
)
def test_the_oldest_go(there: tuple[int, ...], new: tuple[int, ...], dropped: int) -> None:
    serials = iter(range(1, 100))
    commits = KeptCommits(Size(next(serials), size) for size in there)
    sizes = [Size(next(serials), size) for size in new]
    assert commits.dropped_for(sizes) == dropped
    commits.replace(dropped, sizes)
    assert commits.dropped_for([]) == 0  # as it was meant to be
    after = KeptCommits(
        Size(serial, size) for serial, size in enumerate((*there, *new), 1) if serial > dropped
    )
    more = [Size(next(serials), 30)]
    assert commits.dropped_for(more) == after.dropped_for(more)  # nothing was counted wrong
