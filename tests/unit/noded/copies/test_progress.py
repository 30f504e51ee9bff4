import pytest

from noded.copies.chunks import CHUNK
from noded.copies.interface import Fetched
from noded.copies.progress import sentence, share
from noded.copies.throttle import Throttle

GIB = 1024 * CHUNK


@pytest.mark.parametrize(
    ("fetched", "told"),
    [
        (Fetched(), "the copy begins"),
        (Fetched(done=GIB, total=4 * GIB, seconds=1.0), "1.0G of 4.0G copied"),
        (Fetched(done=GIB, total=4 * GIB, seconds=10.0),
         "1.0G of 4.0G copied, 102 MiB/s, 30 s left"),
        (Fetched(done=3 * GIB, done_before=2 * GIB, total=4 * GIB, seconds=1024.0),
         "3.0G of 4.0G copied, 1 MiB/s, 17 minutes left"),
        (Fetched(expected=4 * GIB), "0M of about 4.0G copied"),
        (Fetched(done=GIB, expected=4 * GIB, seconds=10.0),
         "1.0G of about 4.0G copied, 102 MiB/s, 30 s left"),
        (Fetched(done=4 * GIB, expected=GIB, seconds=10.0), "4.0G copied"),
        (Fetched(done=GIB, seconds=10.0), "1.0G copied"),
    ],
)  # fmt: skip
def test_how_far_a_copy_is_is_said_with_its_rate_since_it_was_begun(
    fetched: Fetched, told: str
) -> None:
    assert sentence(fetched) == told


def test_a_share_is_never_more_than_all() -> None:
    assert share(Fetched()) is None
    assert share(Fetched(done=5, total=4)) == 1.0
    assert share(Fetched(done=5, expected=4)) == 1.0
    assert share(Fetched(done=1, expected=4)) == 0.25


def test_no_more_passes_than_was_agreed_on_and_a_pause_is_not_made_up_for() -> None:
    now, slept = [100.0], [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds
        slept[0] += seconds

    throttle = Throttle(4, now=lambda: now[0], sleep=sleep)
    for _ in range(8):
        throttle.passed(CHUNK)
    assert slept[0] == pytest.approx(2.0)
    now[0] += 60
    for _ in range(8):
        throttle.passed(CHUNK)
    assert slept[0] == pytest.approx(4.0)
    Throttle(0, now=lambda: now[0], sleep=sleep).passed(1 << 40)
    assert slept[0] == pytest.approx(4.0)
