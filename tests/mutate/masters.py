"""Faults in what is kept of the state, and in who becomes master of it."""

from tests.mutate.fault import Fault

POWER_CUTS = "tests/sim/test_power_cuts.py"
DISKS = "tests/sim/test_disks.py"
MASTERSHIP = "tests/sim/test_mastership.py"
ACKNOWLEDGED = "tests/sim/test_acknowledged.py"
MAJORITIES = "tests/sim/test_majorities.py"
UPGRADE = "tests/sim/test_rolling_upgrade.py"
REPLICA = "tests/contract/test_replica.py"

OF_MASTERS = (
    Fault(
        "replica never synced", "an acknowledged commit outlives a power cut",
        "noded/replica/schema.py",
        "PRAGMA synchronous=FULL", "PRAGMA synchronous=OFF",
        (DISKS, POWER_CUTS),
    ),
    Fault(
        "full disk tells nothing", "what a full disk has can be read, also by who starts there",
        "noded/replica/schema.py",
        "if alone:", "if False:",
        ("tests/contract/test_replica_disk.py",),
    ),
    Fault(
        "replica synced now and then", "an acknowledged commit outlives a power cut",
        "noded/replica/schema.py",
        "PRAGMA synchronous=FULL", "PRAGMA synchronous=NORMAL",
        (DISKS, POWER_CUTS),
    ),
    Fault(
        "another history accepted", "a commit is only stored on the history it was made on",
        "noded/replica/store.py",
        "if known and known[-1].digest != digest_at(db, stamp, known[-1].serial):", "if False:",
        (REPLICA,),
    ),
    Fault(
        "numbers of jobs forgotten", "a number is given to one job for ever",
        "noded/replica/tables.py",
        "UPDATE meta SET newest_job = max(newest_job, ?)",
        "UPDATE meta SET newest_job = min(newest_job, ?)",
        (REPLICA, f"{REPLICA[:-3]}_file.py"),
    ),
    Fault(
        "states seen before the grants", "the newest state is one seen after the grants",
        "coordinator/master/asking.py",
        "        mastership = self.call(Mastership, node)\n",
        "        mastership = self.call(Mastership, node)\n"
        "        before = await mastership.vote()\n",
        (ACKNOWLEDGED,),
        also=((
            "        return await mastership.vote()",
            "        from msgspec.structs import replace\n"
            "        return replace(await mastership.vote(), stamp=before.stamp)",
        ),),
    ),
    Fault(
        "only_if_named not sent", "a deposed master does not come back by old ballots",
        "coordinator/master/asking.py",
        "only_if_named=only_if_named", "only_if_named=False",
        (MASTERSHIP, "tests/unit/master"),
    ),
    Fault(
        "a refusal counts as silence", "no word goes below a node that knows better",
        "coordinator/quorum/state_choice.py",
        "        if told.may_know_more(stamp):", "        if False:",
        (MAJORITIES, "tests/unit/quorum"),
    ),
    Fault(
        "newer lists not asked", "those are asked whom the newest state names",
        "coordinator/master/confirm.py",
        "if newest == self._electorate:", "if True:",
        (MASTERSHIP, "tests/unit/master"),
    ),
    Fault(
        "no first commit", "a master acts once a commit of its own epoch is durable",
        "coordinator/master/master.py",
        "            # this node as the one to be named.\n"
        "            await self.store.commit(self._taken_over)\n",
        "            # this node as the one to be named.\n",
        (MASTERSHIP,),
    ),
    Fault(
        "only the pool after counts", "a change of the pool needs a majority of both pools",
        "coordinator/state/replication.py",
        "for pool in (self.pool, after) if pool]", "for pool in (after,) if pool]",
        ("tests/unit/state/test_pool.py",),
    ),
    Fault(
        "half is enough", "a commit is acknowledged by more than half of the candidates",
        "coordinator/quorum/majority.py",
        "return 2 * count > of", "return 2 * count >= of",
        ("tests/unit/quorum",),
    ),
    Fault(
        "field of a newer version lost", "an older master keeps what it does not know",
        "coordinator/state/unknown.py",
        "if name in known} | {UNKNOWN: unknown}", "if name in known}",
        ("tests/unit/state/test_versions.py", UPGRADE),
    ),
    Fault(
        "row of a newer version misread", "a version is not master over rows that it would misread",
        "coordinator/state/versions.py",
        "if schema.since > kind.version:", "if False:",
        ("tests/unit/state/test_versions.py", UPGRADE),
    ),
    Fault(
        "row of a newer version taken for an older one", "a newer row keeps its version",
        "coordinator/state/versions.py",
        "    if item.schema is not msgspec.UNSET and item.schema.version > kind.version:\n"
        "        return item\n",
        "",
        ("tests/unit/state/test_versions.py",),
    ),
)  # fmt: skip
