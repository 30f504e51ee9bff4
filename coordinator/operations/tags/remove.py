"""Remove tags from an object."""

from common.errors import NotFound
from coordinator.operations.base import operation
from coordinator.operations.tags.change import ChangeTags


@operation("OP_TAGS_DEL")
class RemoveTags(ChangeTags, kw_only=True):
    """Remove tags from an object, all of them or none."""

    def changed(self, present: tuple[str, ...]) -> set[str]:
        if missing := sorted(set(self.tags).difference(present)):
            raise NotFound(f"The {self.kind} has no tag {', '.join(missing)}.", tags=missing)
        return set(present).difference(self.tags)
