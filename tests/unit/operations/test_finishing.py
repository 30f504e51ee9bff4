import pytest

from coordinator.operations.steps.finishing import progress


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ((0, 0, 0, 0.0), "waits for its turn"),
        ((512, 1024, 0, 0.0), "50 % of 1.0G"),
        ((512, 1024, 256, 2.0), "50 % of 1.0G, 128 MiB/s, 4 s left"),
        ((1 << 20, 1 << 21, 1 << 19, 4096.0), "50 % of 2.0T, 128 MiB/s, 2 hours left"),
    ],
)
def test_progress_is_told_with_rate_and_time_left(
    told: tuple[int, int, int, float], words: str
) -> None:
    assert progress(*told) == words
