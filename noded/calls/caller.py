"""Who may ask this node for what."""

from common.errors import Conflict, NotListed
from common.names import ClusterName
from common.noderpc.identity import Join
from common.rpc.declare import CallSpec
from common.tls.context import Peer
from noded.calls.roster import KnownCandidates


def check_caller(
    call: CallSpec, caller: Peer | None, cluster: ClusterName | None, candidates: KnownCandidates
) -> None:
    """Refuse a call that this caller may not make.

    A node of no cluster listens to whoever has its join token, and to nothing else. A node of
    a cluster listens to those who are on its roster now, on whichever connection they come.

    Args:
        call: what is asked for.
        caller: by the certificate shown, which is of our cluster; None if none was shown.
        cluster: which this node is in.
        candidates: the roster.

    Raises:
        NotListed: it is not on the roster.
        Conflict: it may not; says why.
    """
    is_join = call.service == Join.prefix
    if cluster is None:
        if not is_join:
            raise Conflict("This node is in no cluster yet; add it with “gnt-node add”.")
        return
    if is_join:
        raise Conflict(f"This node is in the cluster {cluster} already.", cluster=cluster)
    if caller is None:
        raise Conflict(f"{call.name} needs a certificate of the cluster {cluster}.")
    if not candidates.includes(caller):
        listed = sorted(candidates.roster.candidates)
        other = " with this key" if caller.node in listed else ""
        raise NotListed(
            f"{caller.node} may not ask for {call.name}: it is no master candidate{other}. "
            f"This node listens to {', '.join(listed) or 'nobody'}.",
            listed=listed,
            **({"age": list(candidates.roster.age)} if candidates.roster.epoch else {}),
        )
