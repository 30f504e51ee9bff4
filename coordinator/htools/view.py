"""The cluster after moves, for tables and for saving."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from coordinator.allocator.balance import Move
from coordinator.allocator.board import Board
from coordinator.allocator.inventory import Inventory
from coordinator.htools.tables import NodesNow


def moved(cluster: Inventory, moves: Sequence[Move]) -> Inventory:
    """The cluster with instances where moves took them, and disk space where they left it."""
    instances, nodes = list(cluster.instances), list(cluster.nodes)
    for move in moves:
        one = instances[move.instance]
        for homes, sign in ((move.before, +1), (move.after, -1)):
            for node in homes:
                if node >= 0 and one.is_local and not one.forthcoming:
                    free = nodes[node].free_disk + sign * one.disk
                    nodes[node] = replace(nodes[node], free_disk=free)
        instances[move.instance] = replace(one, primary=move.after[0], secondary=move.after[1])
    return replace(cluster, instances=tuple(instances), nodes=tuple(nodes))


def nodes_now(board: Board, cluster: Inventory, alias: Callable[[str], str]) -> NodesNow:
    """What the table of a group's nodes shows; ``cluster`` has the instances where they are."""
    nodes = board.nodes.tolist()
    position = {node: at for at, node in enumerate(nodes)}
    primaries: list[list[int]] = [[] for _ in nodes]
    secondaries: list[list[int]] = [[] for _ in nodes]
    used = [0] * len(nodes)
    tags: list[Counter[str]] = [Counter() for _ in nodes]
    for index in reversed(range(len(cluster.instances))):
        one = cluster.instances[index]
        if one.primary in position:
            home = position[one.primary]
            used[home] += one.memory if one.uses_memory else 0
            tags[home].update(board.opening.rules.exclusion_tags(frozenset(one.tags)))
            if not one.forthcoming:
                primaries[home].append(index)
        if one.secondary in position and not one.forthcoming:
            secondaries[position[one.secondary]].append(index)
    peers = []
    for at in range(len(nodes)):
        held = [(nodes[p], int(board.promised[at, p])) for p in range(len(nodes))]
        peers.append(sorted((each for each in held if each[1]), key=lambda each: -each[1]))
    return NodesNow(
        inventory=replace(cluster, nodes=tuple(cluster.nodes[node] for node in nodes)),
        books=board.books,
        primaries=primaries,
        secondaries=secondaries,
        used_memory=used,
        missing=board.opening.missing[board.nodes].tolist(),
        tags=[sorted(each.items()) for each in tags],
        peers=peers,
        alias=alias,
    )
