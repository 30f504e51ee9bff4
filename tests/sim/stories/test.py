"""Stories of operations that are there for tests."""

from coordinator.operations.test.delay import Delay
from tests.support.story import Story

STORIES = {
    "delay": Story(Delay(duration=1.0, repeat=2)),
}  # fmt: skip
