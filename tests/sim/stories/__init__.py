"""Every operation, each in the settings that change its recipe: one table an area."""

from tests.sim.stories import (
    backup,
    cluster,
    elsewhere,
    group,
    instance,
    mirrored,
    moves,
    node,
    tags,
    test,
)

_EVERY = (backup, cluster, elsewhere, group, instance, mirrored, moves, node, tags, test)
AREAS = tuple(area.STORIES for area in _EVERY)
STORIES = {name: story for area in AREAS for name, story in area.items()}
