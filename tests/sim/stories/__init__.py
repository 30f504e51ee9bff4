"""Every operation, each in the settings that change its recipe: one table an area."""

from tests.sim.stories import (
    adopted,
    backup,
    between_clusters,
    cluster,
    disks,
    group,
    instance,
    mirrored,
    moves,
    network,
    node,
    os,
    reserved,
    snapshots,
    tags,
    templates,
    test,
)

_AREAS = (
    adopted,
    backup,
    between_clusters,
    cluster,
    disks,
    group,
    instance,
    mirrored,
    moves,
    network,
    node,
    os,
    reserved,
    snapshots,
    tags,
    templates,
    test,
)
AREAS = tuple(area.STORIES for area in _AREAS)
STORIES = {name: story for area in AREAS for name, story in area.items()}
