"""The faults, in the order of the code that they are planted in."""

from tests.mutate.clients import CLIENTS
from tests.mutate.cluster import CLUSTER
from tests.mutate.confd import CONFD
from tests.mutate.copies import OF_COPIES
from tests.mutate.disks import DISKS as OF_DISKS
from tests.mutate.fault import Fault
from tests.mutate.filters import FILTERS
from tests.mutate.machines import OF_MACHINES
from tests.mutate.mirrors import MIRRORS
from tests.mutate.moves import MOVES
from tests.mutate.nodes import OF_NODES
from tests.mutate.operating_systems import OF_OPERATING_SYSTEMS
from tests.mutate.post_copy import BY_POST_COPY
from tests.mutate.reservations import RESERVATIONS
from tests.mutate.rest import REST
from tests.mutate.slots import OF_SLOTS
from tests.mutate.tpms import OF_TPMS

POWER_CUTS, DISKS = "tests/sim/test_power_cuts.py", "tests/sim/test_disks.py"
MASTERSHIP, OPERATIONS = "tests/sim/test_mastership.py", "tests/sim/test_operations.py"
ACKNOWLEDGED, MAJORITIES = "tests/sim/test_acknowledged.py", "tests/sim/test_majorities.py"
INVARIANTS = "tests/sim/test_invariants.py"
JOB_ORDER, CANCELLED_JOBS = "tests/sim/test_job_order.py", "tests/sim/test_cancelled_jobs.py"
UPGRADE = "tests/sim/test_rolling_upgrade.py"
BAD_PARAMETERS = "tests/sim/test_bad_parameters.py"
REPLICA = "tests/contract/test_replica.py"
CANCELLING = "tests/sim/test_cancelling.py"
CHOICES = "tests/sim/test_choices.py"
FENCE = "tests/unit/noded/test_fence.py"

FAULTS = (
    # noded: who is obeyed
    Fault(
        "epoch of another master", "orders of an epoch are its master's alone",
        "noded/calls/fence.py",
        "if self._grant.master not in (None, caller):", "if False:",
        (FENCE, MASTERSHIP),
    ),
    Fault(
        "order of an epoch that ended meanwhile", "an order that waited is refused once its "
        "epoch is over",
        "noded/calls/fence.py",
        "        self.check(epoch)\n        number = next(self._numbers)",
        "        number = next(self._numbers)",
        (FENCE, "tests/unit/noded/test_node.py"),
    ),
    Fault(
        "grant that waits for nobody", "a grant returns when orders of older epochs have ended",
        "noded/calls/fence.py",
        "while any(call.epoch < epoch for call in self._running.values()):",
        "while False:",
        (FENCE, MASTERSHIP),
    ),
    Fault(
        "grant that waits without a pause", "who waits for older orders lets these go on",
        "noded/calls/fence.py",
        "            self._one_ended.clear()\n", "",
        (FENCE,),
    ),
    Fault(
        "grant not synced", "a grant outlives a power cut",
        "noded/calls/grants.py",
        "await in_thread(write_durably, self._path, to_json(grant))",
        "await in_thread(self._path.write_bytes, to_json(grant))",
        (DISKS, POWER_CUTS),
    ),
    Fault(
        "name not synced when read", "a grant that is gone by outlives a power cut",
        "noded/durable_file.py",
        "            _sync(path)\n            sync_directory(path.parent)\n",
        "            _sync(path)\n",
        (DISKS,),
    ),
    Fault(
        "lines not synced when read", "a key that is known as revoked stays so after a power cut",
        "noded/durable_file.py",
        "            _sync(path)\n            sync_directory(path.parent)\n",
        "            sync_directory(path.parent)\n",
        (DISKS,),
    ),
    Fault(
        "roster not synced when read", "a roster that is in force outlives a power cut",
        "noded/calls/roster.py",
        "(text := read_durably(self._path))", "(text := read_if_there(self._path))",
        (DISKS,),
    ),
    Fault(
        "member not synced when read", "a node that was a member is one after a power cut",
        "noded/identity/directory.py",
        "for directory in (self.place, self.place.parent):", "for directory in (self.place,):",
        (DISKS,),
    ),
    Fault(
        "published again, not synced", "what was told again is on disk, whoever wrote it",
        "noded/handlers/group_files.py",
        "        if not others:", "        if False:",
        ("tests/unit/noded/handlers/test_group_files.py",),
    ),
    Fault(
        "names not synced", "a small file is on disk, its name included, when told so",
        "noded/durable_file.py",
        "            raise\n        sync_directory(path.parent)", "            raise",
        (DISKS, "tests/unit/noded/test_durable_file.py"),
    ),
    Fault(
        "order carried out twice", "a call that comes again gets the recorded answer",
        "noded/calls/recorded.py",
        "known = self._calls.get((caller, call))", "known = None",
        ("tests/sim/test_reality.py", "tests/unit/noded/test_recorded.py"),
    ),
    Fault(
        "task begun after its cancellation", "a task that was cancelled is not begun later",
        "noded/tasks/registry.py",
        "            self._entries[task] = _Entry(_cancelled(task))\n"
        "            self._remember_end(task)",
        "            return",
        ("tests/unit/noded/test_tasks.py",),
    ),
    # noded: the replica
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
    # calls
    Fault(
        "disks deleted for a deposed master", "every order is fenced",
        "common/noderpc/disks.py",
        "    @rpc(timeout=120, safe_to_repeat=True)\n    @abstractmethod\n"
        "    async def ensure_absent",
        "    @rpc(timeout=120, safe_to_repeat=True, fenced=False)\n    @abstractmethod\n"
        "    async def ensure_absent",
        ("tests/unit/test_fenced_calls.py",),
    ),
    # coordinator: becoming master
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
    # coordinator: the state
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
    Fault(
        "started with a default for a bad value", "a bad value of an instance's own keeps it down",
        "coordinator/operations/specs.py",
        "    memory = filled(\n", "    memory = settled(\n",
        (BAD_PARAMETERS,),
        also=(('        what=f"the backend parameters of {instance.name}",\n', ""),),
    ),
    Fault(
        "plugged in with a default for a bad value", "a bad value of a nic's own keeps it out",
        "coordinator/operations/specs.py",
        "filled(NicParameters, sound(NicParameters, base), *layers, what=what)",
        "settled(NicParameters, sound(NicParameters, base), *layers)",
        (BAD_PARAMETERS,),
    ),
    Fault(
        "hypervisor disabled that is in use", "what instances have stays enabled",
        "coordinator/operations/cluster/in_use.py",
        '        ("enabled_hypervisors", "hypervisor"),\n', "",
        (BAD_PARAMETERS,),
    ),
    Fault(
        "address promised to nobody", "jobs at the same time get different addresses",
        "coordinator/operations/placement/numbers.py",
        "(nic for promise in standing for nic in promise.nics)", "()",
        ("tests/sim/test_network_addresses.py",),
    ),
    Fault(
        "nic in a network that is not there", "a group that is not connected gets no such nic",
        "coordinator/operations/addresses.py",
        "        if nic.network and nic.network not in group.networks:\n", "        if False:\n",
        ("tests/sim/test_networks.py",),
    ),
    Fault(
        "addresses of a network found by their texts", "an address is taken however it is written",
        "common/model/address_pool.py",
        "        if found in self._used:\n", "        if address in map(str, self._used):\n",
        ("tests/unit/operations/test_addresses.py", "tests/sim/test_networks_of_version_6.py"),
    ),
    Fault(
        "range of version 6 taken from its nics", "a range stays that nics have addresses of",
        "coordinator/operations/network/words.py",
        "if was.is_inside(str(address)) and not will.is_inside(str(address)):", "if False:",
        ("tests/sim/test_networks_of_version_6.py",),
    ),
    Fault(
        "hooks forgotten by a successor", "whoever goes on with a job runs the hooks after it",
        "coordinator/jobs/preparation.py", "                hooks=due,\n", "",
        ("tests/sim/test_hooks.py",),
    ),
    Fault(
        "refusal of a hook ignored", "a script that fails before an operation refuses it",
        "coordinator/hooks/phases.py", "        if refusals:\n", "        if False:\n",
        ("tests/sim/test_hooks.py",),
    ),
    Fault(
        "hook run that others can change", "scripts of others are not run as root",
        "noded/hooks/directory.py", "        check_program(script, mode)\n", "",
        ("tests/contract/test_hooks.py",),
    ),
    # coordinator: jobs
    Fault(
        "plan of another meaning gone on with", "a plan that means something else is refused",
        "coordinator/jobs/foreign.py",
        "if record.version != version:", "if False:",
        ("tests/unit/jobs/test_foreign.py", "tests/sim/test_other_versions.py"),
    ),
    Fault(
        "plan without what is not known", "an older version gives back what it does not know of "
        "a plan",
        "coordinator/state/versions.py",
        "return scatter(to_builtins(item), kind, _with_version)", "return to_builtins(item)",
        ("tests/unit/jobs/test_foreign.py",),
    ),
    Fault(
        "resumed without locks", "a resumed job has the locks it had",
        "coordinator/jobs/executor.py",
        "                await self._locks.acquire("
        "running.owner, wanted, timeout=None, priority=-20)",
        "                del wanted",
        (INVARIANTS,),
    ),
    Fault(
        "locks that are not those needed", "what was waited for is looked at again",
        "coordinator/jobs/preparation.py",
        "if operation.locks(self.store.state.config, choice) != wanted:", "if False:",
        (JOB_ORDER, "tests/unit/jobs"),
    ),
    Fault(
        "locks released before the end", "a job has its locks until its end is durable",
        "coordinator/jobs/executor.py",
        "            await self._end_badly(running, index, error)\n        finally:",
        "            self._locks.release(running.owner)\n"
        "            await self._end_badly(running, index, error)\n        finally:",
        (INVARIANTS,),
    ),
    Fault(
        "locks released before success", "a job has its locks until its end is durable",
        "coordinator/jobs/executor.py",
        "            jobs = operation.jobs(plan)",
        "            self._locks.release(running.owner)\n"
        "            jobs = operation.jobs(plan)",
        (INVARIANTS,),
    ),
    Fault(
        "failure not durable", "whoever goes on with a failing job goes back, too",
        "coordinator/jobs/journal.py",
        "failure=failure_of(failure))\n        await self._store.commit([self._running.put()])",
        "failure=failure_of(failure))",
        ("tests/unit/jobs", INVARIANTS),
    ),
    Fault(
        "start not noted", "a step is begun once its beginning is durable",
        "coordinator/jobs/recipe.py",
        'await journal.write("started", step.title)', 'journal.note("started", step.title)',
        ("tests/unit/jobs/test_recipe.py", OPERATIONS),
    ),
    Fault(
        "undone from the front", "steps are undone in reverse",
        "coordinator/jobs/recipe.py",
        "for step in reversed(begun):", "for step in begun:",
        ("tests/unit/jobs/test_recipe.py",),
    ),
    Fault(
        "undone beyond the point of no return", "what cannot be undone is not",
        "coordinator/jobs/recipe.py",
        "            begun.clear()\n", "            pass\n",
        ("tests/unit/jobs/test_recipe.py",),
    ),
    Fault(
        "promises not kept at a take-over", "a place that was promised is not given away",
        "coordinator/jobs/queue.py",
        "                self._executor.reserve(running)\n", "",
        ("tests/sim/test_placed_together.py kept_at_a_take_over",),
    ),
    Fault(
        "choice forgotten", "a choice that was stored is kept by the next master",
        "coordinator/jobs/executor.py",
        "plan = await preparation.plan(choice)", "plan = await preparation.plan(None)",
        (CHOICES,),
    ),
    Fault(
        "stale choice insisted on", "a choice that will not do any more is made anew",
        "coordinator/jobs/preparation.py",
        "                choice = None\n", "",
        (CHOICES,),
    ),
    Fault(
        "named node replaced", "only what an allocator chose by itself is chosen again",
        "coordinator/operations/instance/place.py",
        "        if not place.allocator:\n            raise\n", "",
        (CHOICES,),
    ),
    Fault(
        "room not handed over", "jobs that another one has planned have their room",
        "coordinator/jobs/submission.py",
        "choice=to_values(choice, operation.choice_type),", "choice=None,",
        ("tests/sim/test_placed_together.py kept_at_a_take_over",),
    ),
    # coordinator: operations
    Fault(
        "shutdown that goes on", "a guest whose shutdown is undone stays",
        "coordinator/operations/steps/guests.py",
        '        await cluster.call(Tasks, node).cancel(task=cluster.task_id("shutdown"))\n', "",
        (CANCELLED_JOBS,),
    ),
    Fault(
        "move that cannot be undone", "a move is undone by asking its source",
        "coordinator/operations/instance/migrate.py",
        "undo=lambda: stop_transfer(cluster, plan),", "undo=None,",
        (INVARIANTS, CANCELLING),
    ),
    Fault(
        "shell left behind", "what was prepared for a move that failed is cleared away",
        "coordinator/operations/instance/migrate.py",
        "undo=lambda: clear_shell(cluster, plan),", "undo=None,",
        (f"{OPERATIONS} migrate",),
    ),
    Fault(
        "disks not shared for a move", "a target has a guest's disks before it receives it",
        "coordinator/operations/instance/transfer.py",
        "    await hold(cluster, plan.guest, plan.share.do)\n", "",
        (f"{OPERATIONS} migrate",),
    ),
    Fault(
        "disks left shared", "a target that a move did not reach lets go of the disks",
        "coordinator/operations/instance/transfer.py",
        "    await hold(cluster, plan.guest, plan.share.undo)\n", "",
        (f"{OPERATIONS} migrate",),
    ),
    Fault(
        "disks left behind", "after a move nobody but its target has the disks",
        "coordinator/disks/kind.py",
        "return Handover(do=(*none(*others), *sole(home)))", "return Handover(do=sole(home))",
        ("tests/sim/test_migrations.py", INVARIANTS, "tests/unit/disks"),
    ),
    Fault(
        "disks attached beside others", "nobody has disks alone while another node has them",
        "coordinator/disks/kind.py",
        "Handover(do=shared(source, target)", "Handover(do=(*sole(source), *shared(target))",
        ("tests/unit/disks",),
    ),
    Fault(
        "run before its source has left", "a guest runs on the target once its source has left",
        "coordinator/operations/instance/transfer.py",
        "left = left or await _has_left(cluster, plan)", "left = True",
        (f"{OPERATIONS} migrate", CANCELLING),
    ),
    Fault(
        "failed transfer taken for a move", "of a transfer that failed the source is asked",
        "coordinator/operations/instance/transfer.py",
        "        if not await _has_left(cluster, plan):", "        if False:",
        (f"{OPERATIONS} migrate", CANCELLING),
    ),
    Fault(
        "cancellation forgotten", "a cancellation that was promised outlives its coordinator",
        "coordinator/jobs/cancelling.py",
        "running.change(cancel_wanted=True)", "running.change(cancel_wanted=False)",
        (INVARIANTS, CANCELLING),
    ),
    *CLUSTER,
    *CONFD,
    *FILTERS,
    *OF_MACHINES,
    *OF_SLOTS,
    *OF_TPMS,
    *CLIENTS,
    *RESERVATIONS,
    *REST,
    *OF_DISKS,
    *MIRRORS,
    *MOVES,
    *BY_POST_COPY,
    *OF_NODES,
    *OF_COPIES,
    *OF_OPERATING_SYSTEMS,
    Fault(
        "order carried out late", "an order does nothing once its caller has given up",
        "noded/calls/expiry.py",
        "if (late_s := now.at_s - good_until.at_s) > 0:",
        "if (late_s := now.at_s - good_until.at_s) > 1e9:",
        ("tests/sim/test_late_orders.py",),
    ),
    Fault(
        "order for the noded before", "an order is for one life of noded",
        "noded/calls/expiry.py",
        "if good_until.process != now.process:", "if False:",
        ("tests/sim/test_late_orders.py",),
    ),
    Fault(
        "anybody of the cluster obeyed", "only candidates give orders",
        "noded/calls/caller.py",
        "if not candidates.includes(caller):", "if False:",
        ("tests/unit/noded/test_caller.py",),
    ),
)  # fmt: skip
