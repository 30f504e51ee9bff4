"""Options for the cluster's pool of user ids, and what becomes of it."""

from typing import Annotated

from common.errors import InvalidRequest
from common.model.cluster import Cluster as ClusterRecord
from common.model.uid_pool import UidPool, with_uids, without_uids
from coordinator.operations.parameter import Syntax, option

UidPoolOption = Annotated[
    UidPool | None,
    option(
        "--uid-pool",
        syntax=Syntax.UIDS,
        help="user ids for guests with security_model=pool, among those that nodes allow; “”: none",
    ),
]
AddUids = Annotated[
    UidPool | None, option("--add-uids", syntax=Syntax.UIDS, help="more of these user ids")
]
RemoveUids = Annotated[
    UidPool | None,
    option("--remove-uids", syntax=Syntax.UIDS, help="these no more, for guests to be started"),
]


def edited_uid_pool(
    present: ClusterRecord, pool: UidPool | None, add: UidPool | None, remove: UidPool | None
) -> UidPool:
    """Return the pool as it will be: another one, with some ids, then without some.

    Raises:
        InvalidRequest: it cannot be so.
    """
    try:
        changed = with_uids(present.uid_pool if pool is None else pool, add or ())
        return without_uids(changed, remove or ())
    except ValueError as error:
        raise InvalidRequest(f"The pool of user ids cannot be changed: {error}.") from error
