"""Add tags to an object."""

from coordinator.operations.base import operation
from coordinator.operations.tags.change import ChangeTags


@operation("OP_TAGS_SET")
class AddTags(ChangeTags, kw_only=True):
    """Add tags to an object; those that it has already stay."""

    def changed(self, present: tuple[str, ...]) -> set[str]:
        return {*present, *self.tags}
