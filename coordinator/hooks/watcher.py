"""Scripts that root of a node has put there to be run each time the watcher has looked."""

from common.errors import GntError
from common.noderpc.hooks import Ending, Hooks
from coordinator.nodes.calls import Nodes
from coordinator.nodes.each import each
from coordinator.state.config import Config

DIRECTORY = "watcher"  # Ganeti's


async def run_watcher_hooks(config: Config, nodes: Nodes) -> list[str]:
    """Run them on all nodes at once; return a sentence for each that failed.

    Nodes that do not answer have none: the watcher tells of them otherwise.
    """
    online = {node.uuid: node for node in config.sorted_nodes() if not node.offline}
    hooks = {uuid: nodes.service(Hooks, node) for uuid, node in online.items()}
    present = await each(
        {uuid: service.present(directories=(DIRECTORY,)) for uuid, service in hooks.items()}
    )
    has_some = [uuid for uuid, found in present.items() if DIRECTORY in _or_nothing(found)]
    environment = {
        "GANETI_HOOKS_PATH": DIRECTORY,
        "GANETI_CLUSTER": config.cluster.name,
        "GANETI_MASTER": config.master().name,
    }
    ended = await each(
        {uuid: hooks[uuid].run(directory=DIRECTORY, environment=environment) for uuid in has_some}
    )
    complaints = []
    for uuid, reports in ended.items():
        if isinstance(reports, GntError):
            complaints.append(f"Hooks of the watcher on {online[uuid].name}: {reports.message}")
            continue
        complaints += [
            f"Hook {DIRECTORY}/{report.script} on {online[uuid].name} failed: {report.said}"
            for report in reports
            if report.ending is Ending.FAILED
        ]
    return complaints


def _or_nothing(found: tuple[str, ...] | GntError) -> tuple[str, ...]:
    return () if isinstance(found, GntError) else found
