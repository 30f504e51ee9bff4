"""One round of the watcher, as a conversation with the coordinator.

A round yields requests and is sent their answers, so that it can be held over a socket or with a
simulated master, and be broken off anywhere: whatever it ordered is the queue's then, and the
next round looks anew.
"""

from coordinator.watcher.conversation import Request, Round, Told, Weight
from coordinator.watcher.copies import tend_mirrors
from coordinator.watcher.decide import spoken
from coordinator.watcher.expired import forget_expired
from coordinator.watcher.lost_devices import repair_storage
from coordinator.watcher.not_running import restart
from coordinator.watcher.silent import fence_silent
from coordinator.watcher.turned_off import note_turned_off

ARCHIVE_PATIENCE_S = 30.0


def one_round(now: float, *, heed_pause: bool = True, of_cluster: bool = True) -> Round:
    """Look once, and order what is to be done.

    Args:
        now: seconds since 1970.
        heed_pause: do nothing while the operator has the watcher pause.
        of_cluster: see to what is the whole cluster's, too.

    Returns:
        What there is to say about it.
    """
    names = [
        "watcher_pause", "drain_flag", "self_repair", "maintain_node_health",
        "enabled_user_shutdown",
    ]  # fmt: skip
    pause, drained, repairs, fences, may_turn_off = yield Request("QueryConfigValues", (names,))
    if heed_pause and pause is not None and pause > now:
        return [Told(Weight.INFO, f"The watcher pauses for another {spoken(pause - now)}.")]
    told = yield from restart(now, drained=drained)
    if may_turn_off and not drained:
        told += yield from note_turned_off(now)
    if not drained:
        told += yield from tend_mirrors(now)
        told += yield from forget_expired(now)
    if fences and of_cluster and not drained:
        told += yield from fence_silent(now)
    if repairs and not drained:
        told += yield from repair_storage(now)
    if not of_cluster:
        return told
    # Of which age is as the cluster is set.
    archived, _ = yield Request("AutoArchiveJobs", (None, ARCHIVE_PATIENCE_S))
    if archived:
        told.append(Told(Weight.INFO, f"Archived {archived} jobs."))
    return told


def run_hooks(now: float, *, heed_pause: bool = True) -> Round:
    """Have the operator's scripts run that follow a round, unless the watcher is to pause.

    They may take minutes, so what was done in the round is told before.
    """
    (pause,) = yield Request("QueryConfigValues", (["watcher_pause"],))
    if heed_pause and pause is not None and pause > now:
        return []
    return [Told(Weight.WARNING, text) for text in (yield Request("RunWatcherHooks", ()))]
