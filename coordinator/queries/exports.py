"""The exports on nodes, which only they know."""

from dataclasses import dataclass, replace

from common.errors import GntError
from coordinator.queries.field import Missing
from coordinator.queries.source import Source


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One export, or a node that does not tell which it has."""

    node: str
    export: str | Missing
    nodes = ()  # all have been asked


async def with_exports(source: Source) -> Source:
    """Ask all nodes for their exports; one that is marked offline is not asked."""
    online = [node for node in source.state.config.sorted_nodes() if not node.offline]
    answers = await source.asker.exports(online)
    told = {node.name: answers[node.uuid] for node in online}
    known = {name: None if isinstance(a, GntError) else tuple(a) for name, a in told.items()}
    return replace(source, exports=known)


def export_rows(source: Source) -> list[ExportRow]:
    rows = []
    for node, exports in source.exports.items():
        rows += [ExportRow(node, export) for export in exports or ()]
        rows += [ExportRow(node, Missing.NO_DATA)] if exports is None else []
    return rows
