"""LUXI's older queries: plain values instead of ``[status, value]``, one method a kind."""

from collections.abc import Sequence
from typing import Any

from common.errors import InvalidRequest
from common.luxi.failures import JobLost
from coordinator.queries.exports import with_exports
from coordinator.queries.query import query
from coordinator.queries.source import Source
from coordinator.queries.subject import find_subject
from coordinator.state.config import Config
from coordinator.state.tagged import Tagged, find_tagged


async def query_objects(
    what: str, names: Sequence[Any], fields: Sequence[str], source: Source, *, lock: bool = False
) -> list[list[Any]]:
    """Return what QueryInstances, QueryNodes and QueryGroups return: rows of plain values.

    Args:
        what: the kind.
        names: which objects; none means all.
        fields: names of fields.
        source: where to look.
        lock: what older clients ask for; nobody grants it any more.

    Raises:
        InvalidRequest: a field that does not exist, or ``lock``.
        NotFound: a name that does not exist.
    """
    if lock:
        raise InvalidRequest("Sync queries are not allowed: ask without locking.")
    subject = find_subject(what)
    unknown = [name for name in fields if name not in subject.fields]
    if unknown:
        raise InvalidRequest(f"There is no field {', '.join(unknown)} of {what}s.")
    condition = ["|", *(["==", subject.key, name] for name in names)] if names else None
    answer = await query(what, fields, condition, source)
    return [[value for _, value in row] for row in answer["data"]]


async def query_jobs(
    ids: Sequence[Any] | None, fields: Sequence[str], source: Source
) -> list[list[Any] | None]:
    """Return what QueryJobs returns: a row for each id, None for one that does not exist.

    Without ids, all jobs that are not archived.
    """
    if not ids:
        return list(await query_objects("job", (), fields, source))
    rows: list[list[Any] | None] = []
    for number in ids:
        try:
            rows += await query_objects("job", (number,), fields, source)
        except JobLost:
            rows.append(None)
    return rows


def config_values(names: Sequence[str], config: Config) -> list[Any]:
    """Return what QueryConfigValues returns, in the order asked.

    Raises:
        InvalidRequest: no such value.
    """
    values = {
        "cluster_name": config.cluster.name,
        "master_node": config.master().name,
        "drain_flag": config.cluster.queue_drained,
        "watcher_pause": config.cluster.watcher_pause,
        "self_repair": config.cluster.self_repair,
        "enabled_user_shutdown": config.cluster.enabled_user_shutdown,
        "maintain_node_health": config.cluster.maintain_node_health,
        "modify_ssh_setup": False,
        "ssh_key_type": "rsa",
        "ssh_key_bits": 2048,
    }
    for name in names:
        if name not in values:
            raise InvalidRequest(
                f"There is no value “{name}” of the cluster; there are {', '.join(values)}."
            )
    return [values[name] for name in names]


def query_tags(kind: str, name: str, config: Config) -> list[str]:
    """Return what QueryTags returns: the tags of one object, sorted.

    Raises:
        InvalidRequest: objects of this kind have no tags.
        NotFound: there is no such object.
    """
    if kind not in set(Tagged):
        raise InvalidRequest(f"There are no tags of a “{kind}”.")
    return sorted(find_tagged(config, Tagged(kind), name).tags)


async def query_exports(nodes: Sequence[str], source: Source) -> dict[str, list[str] | bool]:
    """Return what QueryExports returns: the exports on each node; False where it does not tell."""
    config = source.state.config
    chosen = [config.node(name) for name in nodes] if nodes else config.sorted_nodes()
    known = (await with_exports(source)).exports
    told = {node.name: known.get(node.name) for node in chosen}
    return {name: False if exports is None else list(exports) for name, exports in told.items()}
