"""Stories of tags."""

from coordinator.operations.tags.add import AddTags
from coordinator.operations.tags.get import GetTags
from coordinator.operations.tags.remove import RemoveTags
from coordinator.operations.tags.search import SearchTags
from coordinator.state.tagged import Tagged
from tests.sim.settings import GAMMA, WEB1, web1_on
from tests.support.cluster import SimulatedCluster
from tests.support.story import Story


async def gamma_is_blue(cluster: SimulatedCluster) -> None:
    await cluster.run(AddTags(kind=Tagged.NODE, name=GAMMA, tags=("blue", "rack:7")))


STORIES = {
    "add tags to an instance": Story(
        AddTags(kind=Tagged.INSTANCE, name=WEB1, tags=("blue",)), web1_on("gamma", start=False)
    ),
    "add tags to the cluster": Story(AddTags(kind=Tagged.CLUSTER, tags=("blue",))),
    "remove tags of a node": Story(
        RemoveTags(kind=Tagged.NODE, name=GAMMA, tags=("blue",)), gamma_is_blue
    ),
    "tell tags": Story(GetTags(kind=Tagged.NODE, name=GAMMA), gamma_is_blue),
    "search tags": Story(SearchTags(pattern="^b"), gamma_is_blue),
}
