"""Faults in what users of the REST interface are promised."""

from tests.mutate.fault import Fault

CHANGES = "coordinator/queries/changes.py"
FEED = "coordinator/queries/feed.py"
RIGHTS = "coordinator/rapi/rights.py"

REST = (
    Fault(
        "disks of nobody",
        "an instance whose disk has changed is told of",
        CHANGES,
        '_with_parts(old, new, kinds.DISK, "disks")',
        "set()",
        ("tests/unit/queries/test_changes.py",),
    ),
    Fault(
        "way forgotten",
        "what a job has left behind on its way is looked at when it ends",
        CHANGES,
        "nodes = set(self.open_jobs.get(job.id, ()))",
        "nodes: set[NodeId] = set()",
        ("tests/unit/queries/test_changes.py",),
    ),
    Fault(
        "end told first",
        "whoever has seen the end of a job sees what it did",
        FEED,
        "if mine.stored and (nodes := ended_on(mine.moment, mine.target.state)):",
        "if (nodes := set[NodeId]()):",
        ("tests/sim/test_feed.py",),
    ),
    Fault(
        "tag of anybody",
        "owners have nothing to say of the instances of others",
        RIGHTS,
        'if user.owns.isdisjoint(row.values()["tags"]):',
        "if not user.owns:",
        ("tests/sim/test_rapi.py",),
    ),
    Fault(
        "any parameter",
        "owners give no parameter that reaches beyond their instance",
        RIGHTS,
        "return allowed is not None and allowed.issuperset(given)",
        "return allowed is not None",
        ("tests/sim/test_rapi.py",),
    ),
    Fault(
        "token for ever",
        "a token that has expired opens nothing",
        "coordinator/rapi/users.py",
        "return user if user and self._now() < user.expires_s else None",
        "return user",
        ("tests/unit/rapi/test_users.py",),
    ),
    Fault(
        "old version changed",
        "what has changed since it was read is not changed unseen",
        "coordinator/rapi/conditions.py",
        'if header.strip() == "*" or str(serial) in serials:',
        "if True:",
        ("tests/sim/test_rapi.py",),
    ),
    Fault(
        "forged figure",
        "no name that somebody gave forges a figure",
        "common/exposition.py",
        '{name}="{value.translate(_ESCAPES_IN_QUOTES)}"',
        '{name}="{value}"',
        ("tests/unit/test_exposition.py",),
    ),
    Fault(
        "silent node answers",
        "a node that is silent is told as such",
        "coordinator/rapi/metrics.py",
        "int(node.mtotal is not None) for node in online",
        "1 for node in online",
        ("tests/sim/test_rapi_metrics.py", "tests/unit/rapi/test_metrics.py"),
    ),
    Fault(
        "figures of elsewhere",
        "nothing is told of a cluster whose coordinator is not here",
        "coordinator/rapi/reads.py",
        "    if copy.is_whole:\n        figures +=",
        "    if True:\n        figures +=",
        ("tests/sim/test_rapi_metrics.py",),
    ),
    Fault(
        "figures of guests",
        "as many figures are told as the machine has disks",
        "noded/monitor/disk_statistics.py",
        "if not is_part and not _STAND_INS.match(disk.name):",
        "if not is_part:",
        ("tests/unit/noded/monitor/test_reports.py",),
    ),
)
