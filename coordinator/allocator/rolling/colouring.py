"""Colouring of graphs: no two vertices that an edge joins have the same colour.

Three greedy ways, each of which gives the next vertex the smallest colour its neighbours leave.
They differ in which vertex is next. Welsh and Powell: the one with most edges. Brélaz (DSatur):
the one whose neighbours have most different colours. Dcolor: the one with most coloured
neighbours. Vertices that are equal in this are taken from the highest down.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

Graph = Mapping[int, Sequence[int]]
"""Neighbours by vertex, an edge may occur twice, and join a vertex to itself."""

Colours = Mapping[int, int]
"""Colour by vertex, from 0."""


def graph_of(vertices: Iterable[int], edges: Iterable[tuple[int, int]]) -> Graph:
    """Make a graph; neighbours are listed in the reverse order of the edges."""
    neighbours: dict[int, list[int]] = {vertex: [] for vertex in vertices}
    for start, end in edges:
        neighbours[start].append(end)
    return {vertex: found[::-1] for vertex, found in neighbours.items()}


def largest_first(graph: Graph) -> Colours:
    """Colour vertices by falling number of edges."""
    colours: dict[int, int] = {}
    for vertex in sorted(sorted(graph, reverse=True), key=lambda one: -len(graph[one])):
        colours[vertex] = _smallest_left(graph, colours, vertex)
    return colours


def most_colours_first(graph: Graph) -> Colours:
    """Colour vertices by falling number of different colours around them, then of edges."""
    return _dynamic(graph, lambda around: len(set(around)))


def most_coloured_first(graph: Graph) -> Colours:
    """Colour vertices by falling number of coloured neighbours, then of edges."""
    return _dynamic(graph, len)


WAYS: Mapping[str, Callable[[Graph], Colours]] = {
    "LF": largest_first,
    "Dsatur": most_colours_first,
    "Dcolor": most_coloured_first,
}


def classes(colours: Colours) -> list[list[int]]:
    """Vertices of the same colour together, by colour; each class ascending."""
    found: dict[int, list[int]] = {}
    for vertex in sorted(colours):
        found.setdefault(colours[vertex], []).append(vertex)
    return [found[colour] for colour in sorted(found)]


def _dynamic(graph: Graph, weight: Callable[[list[int]], int]) -> Colours:
    """Colour the heaviest vertex, weigh its neighbours again, and so on."""
    colours: dict[int, int] = {}
    weights = {vertex: (0, len(near), vertex) for vertex, near in graph.items()}
    while weights:
        vertex = max(weights, key=weights.__getitem__)
        del weights[vertex]
        colours[vertex] = _smallest_left(graph, colours, vertex)
        for near in set(graph[vertex]) & weights.keys():
            around = [colours[each] for each in graph[near] if each in colours]
            weights[near] = (weight(around), len(graph[near]), near)
    return colours


def _smallest_left(graph: Graph, colours: Colours, vertex: int) -> int:
    taken = {colours[near] for near in graph[vertex] if near in colours}
    return next(colour for colour in range(len(taken) + 1) if colour not in taken)
