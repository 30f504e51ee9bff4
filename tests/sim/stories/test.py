"""Stories of operations that are there for tests."""

from common.model.template import DiskTemplate
from coordinator.operations.devices import DiskRequest
from coordinator.operations.placement.allocators import RequestType
from coordinator.operations.test.allocator import Direction, TryAllocator
from coordinator.operations.test.delay import Delay
from coordinator.operations.test.dummy import Dummy
from coordinator.operations.test.job_queue import TryQueue
from coordinator.operations.test.os_parameters import TryOsParameters
from tests.support.story import Story

STORIES = {
    "delay": Story(Delay(duration=1.0, repeat=2)),
    "delay with locked nodes": Story(Delay(duration=1.0, on_nodes=("beta",), no_locks=False)),
    "a delay that nobody interrupts": Story(Delay(duration=1.0, repeat=1, interruptible=True)),
    "do nothing": Story(Dummy(outcome=[1], messages=("a", "b"))),
    "try the queue, unseen": Story(TryQueue()),
    "ask where a new instance would go": Story(
        TryAllocator(
            name="web1", mode=RequestType.ALLOCATE, direction=Direction.OUT,
            disk_template=DiskTemplate.SHAREDFILE, disks=(DiskRequest(size=64),),
        )
    ),
    "try secret parameters": Story(
        TryOsParameters(osparams_secret={"password": "open sesame"}), has_secret=True
    ),
}  # fmt: skip
