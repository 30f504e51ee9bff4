"""Colourings: valid, thrifty, and in the order that decides ties."""

from random import Random

import pytest

from coordinator.allocator.rolling.colouring import (
    WAYS,
    Graph,
    classes,
    graph_of,
    largest_first,
    most_coloured_first,
    most_colours_first,
)


def both_ways(*edges: tuple[int, int]) -> list[tuple[int, int]]:
    return [each for edge in edges for each in (edge, edge[::-1])]


def random_graph(rng: Random) -> Graph:
    size = rng.randint(1, 14)
    pairs = [(a, b) for a in range(size) for b in range(a) if rng.random() < rng.choice((0.1, 0.5))]
    loops = [(one, one) for one in range(size) if rng.random() < 0.2]
    return graph_of(range(size), both_ways(*pairs, *pairs[:3]) + loops)


@pytest.mark.parametrize("way", WAYS)
def test_neighbours_differ(way: str) -> None:
    for seed in range(200):
        graph = random_graph(Random(seed))
        colours = WAYS[way](graph)
        assert colours.keys() == graph.keys()
        for vertex, near in graph.items():
            for other in set(near) - {vertex}:
                assert colours[vertex] != colours[other], f"seed {seed}"
            assert colours[vertex] <= len(set(near) - {vertex}), f"seed {seed}"


def test_two_colours_do_for_what_has_two_sides() -> None:
    """Brélaz's way needs no more for a connected bipartite graph."""
    for seed in range(100):
        rng = Random(seed)
        left, right = rng.randint(1, 6), rng.randint(1, 6)
        size = left + right
        tree = [(0, left + b) for b in range(right)] + [(a, left) for a in range(left)]
        more = [(a, left + b) for a in range(left) for b in range(right) if rng.random() < 0.3]
        graph = graph_of(range(size), both_ways(*tree, *more))
        assert len(classes(most_colours_first(graph))) == 2, f"seed {seed}"


def test_the_greedy_order_can_do_worse() -> None:
    """A path of four with its ends first in degree order would need three colours."""
    path = graph_of(range(4), both_ways((0, 2), (2, 3), (3, 1)))
    assert largest_first(path) == {3: 0, 2: 1, 1: 1, 0: 0}
    assert most_coloured_first(path) == {3: 0, 2: 1, 1: 1, 0: 0}


def test_neighbours_are_listed_from_the_last_edge_to_the_first() -> None:
    assert graph_of(range(3), [(0, 1), (0, 2), (0, 1)]) == {0: [1, 2, 1], 1: [], 2: []}


def test_classes_are_in_the_order_of_their_colours() -> None:
    assert classes({0: 1, 1: 0, 2: 1, 3: 2}) == [[1], [0, 2], [3]]
