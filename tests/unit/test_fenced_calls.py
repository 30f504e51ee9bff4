"""Which calls are not fenced: the others are refused to whoever was deposed."""

import importlib
import pkgutil

from common import noderpc
from common.rpc.declare import CallSpec, NodeService

LOOKS = {
    "exports.exports", "exports.show", "facts.facts", "hooks.present", "identity.who",
    "instances.guests", "master-address.holds", "mirrors.devices", "mirrors.status",
    "os.definitions", "physical-volumes.devices", "physical-volumes.groups", "programs.problems",
    "providers.providers", "remote.digests", "replica.archived", "replica.commits_after",
    "replica.read", "replica.read_archive", "replica.stamp", "roster.held", "roster.show",
    "tasks.watch",
}  # fmt: skip
# A master is asked for by nodes that are none yet; those that join obey nobody.
BEFORE_ANY_EPOCH = {
    "join.accept", "join.check", "join.request", "mastership.grant", "mastership.vote",
    "mastership.watch",
}  # fmt: skip


def calls() -> list[CallSpec]:
    for module in pkgutil.iter_modules(noderpc.__path__):
        importlib.import_module(f"{noderpc.__name__}.{module.name}")
    return [call for kind in NodeService.__subclasses__() for call in kind.calls.values()]


def test_only_what_changes_nothing_is_not_fenced() -> None:
    assert {call.name for call in calls() if not call.fenced} == LOOKS | BEFORE_ANY_EPOCH
