"""What adding tags to an object and removing them have in common."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated

from msgspec.structs import replace

from common.errors import InvalidRequest
from common.messages import Order
from common.model.tags import check_tags
from coordinator.locks.names import Wanted
from coordinator.operations.base import Operation
from coordinator.operations.cluster_view import Cluster
from coordinator.operations.parameter import Syntax, argument
from coordinator.operations.step import Edit, Step, record
from coordinator.operations.tags.tagged import KindArgument, NameArgument, locks_of_tagged
from coordinator.state.config import Config
from coordinator.state.rows import Put
from coordinator.state.state import State
from coordinator.state.tagged import Tagged, find_tagged


class TagPlan(Order, kw_only=True):
    kind: Tagged
    uuid: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    now: float


class ChangeTags(Operation[None, TagPlan], kw_only=True):
    """Changes the tags of one object, and nothing else of it."""

    kind: KindArgument
    name: NameArgument = None
    tags: Annotated[tuple[str, ...], argument("the tags", syntax=Syntax.WORDS)]

    @abstractmethod
    def changed(self, present: tuple[str, ...]) -> set[str]:
        """Return the tags that it will have.

        Raises:
            GntError: it cannot have them.
        """

    def locks(self, config: Config, _: None) -> Wanted:
        return locks_of_tagged(config, self.kind, self.name)

    async def prepare(self, cluster: Cluster, _: None) -> TagPlan:
        if not self.tags:
            raise InvalidRequest("Say which tags.")
        check_tags(self.tags)
        item = find_tagged(cluster.config, self.kind, self.name)
        after = tuple(sorted(self.changed(item.tags)))
        check_tags(after)
        return TagPlan(
            kind=self.kind, uuid=item.uuid, before=item.tags, after=after, now=cluster.now()
        )

    def recipe(self, cluster: Cluster, plan: TagPlan) -> Iterator[Step]:  # noqa: ARG002
        yield record(
            f"change the tags of the {plan.kind}",
            _set(plan, plan.after),
            undo=_set(plan, plan.before),
        )


def _set(plan: TagPlan, tags: tuple[str, ...]) -> Edit:
    def edit(state: State) -> list[Put]:
        present = find_tagged(state.config, plan.kind, plan.uuid)
        serial_no = present.serial_no + 1
        return [Put(replace(present, tags=tags, mtime=plan.now, serial_no=serial_no))]

    return edit
