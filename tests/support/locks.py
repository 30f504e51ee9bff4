"""Whether jobs have locked the nodes on which they change something."""

from common.rpc.declare import CallSpec
from coordinator.locks.names import BGL, Level, Mode
from coordinator.operations.locking import from_rows
from tests.support.cluster import SimulatedCluster
from tests.support.network import Trip

# They go to other nodes than those that the job is about, or to one whatever else goes on there.
_NEED_NO_LOCK = {
    "hooks.run",  # on the master and where the operator wants to hear of it
    "roster.update",  # every node is told who is in the cluster
    "identity.leave",  # by one that the cluster does not know any more
    "identity.request", "identity.renew", "identity.rename",  # by what had another name
    "programs.out_of_band",  # on the master, about a node that may be dead
    "programs.restricted",  # what an operator wants to run now
    "facts.powercycle",  # helps where whoever has the lock hangs
    "master-address.let_go",  # on the master, which changes in other ways
    "remote.get",  # asks for what a provider has
}  # fmt: skip


def is_unlocked(cluster: SimulatedCluster, trip: Trip) -> bool:
    """Tell whether it is an order of a step to a node for which its job has no lock."""
    number = trip.envelope.job
    if number is None or not _changes(trip.call):
        return False
    state = cluster.state
    op = next((op for op in state.jobs[number].ops if not op.status.is_final), None)
    if op is None or op.plan is None:
        return False  # what is only asked in advance may have changed by then
    held = from_rows(op.locks).locks
    node = next((n.uuid for n in state.config.nodes.values() if n.name == trip.target), None)
    locked = {lock.name for lock in held if lock.level in (Level.NODE, Level.NODE_RES)}
    return node not in locked and held[BGL] is not Mode.EXCLUSIVE


def _changes(call: CallSpec) -> bool:
    return call.fenced and call.name not in _NEED_NO_LOCK
