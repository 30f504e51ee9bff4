"""Every operation, each in the settings that change its recipe: one table an area."""

from tests.sim.stories import cluster, instance, moves, node, test

AREAS = (cluster.STORIES, instance.STORIES, moves.STORIES, node.STORIES, test.STORIES)
STORIES = {name: story for area in AREAS for name, story in area.items()}
