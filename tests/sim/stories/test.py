"""Stories of operations that are there for tests."""

from coordinator.operations.test.delay import Delay
from coordinator.operations.test.os_parameters import TryOsParameters
from tests.support.story import Story

STORIES = {
    "delay": Story(Delay(duration=1.0, repeat=2)),
    "delay with locked nodes": Story(Delay(duration=1.0, on_nodes=("beta",), no_locks=False)),
    "try secret parameters": Story(
        TryOsParameters(osparams_secret={"password": "open sesame"}), has_secret=True
    ),
}  # fmt: skip
