"""Faults in whose orders a node carries out, and in what it keeps of that."""

from tests.mutate.fault import Fault

POWER_CUTS = "tests/sim/test_power_cuts.py"
DISKS = "tests/sim/test_disks.py"
MASTERSHIP = "tests/sim/test_mastership.py"
FENCE = "tests/unit/noded/test_fence.py"

OBEYING = (
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
        "        self.check(epoch)\n        return _Held(", "        return _Held(",
        (FENCE, "tests/unit/noded/test_node.py"),
    ),
    Fault(
        "grant that waits for nobody", "a grant returns when orders of older epochs have ended",
        "noded/calls/fence.py",
        "while any(call.epoch < epoch for call in self._running):",
        "while False:",
        (FENCE, MASTERSHIP),
    ),
    Fault(
        "grant that waits without a pause", "who waits for older orders lets these go on",
        "noded/calls/fence.py",
        "        self._ended.clear()\n", "",
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
    Fault(
        "disks deleted for a deposed master", "every order is fenced",
        "common/noderpc/disks.py",
        "    @rpc(timeout=120, safe_to_repeat=True)\n    @abstractmethod\n"
        "    async def ensure_absent",
        "    @rpc(timeout=120, safe_to_repeat=True, fenced=False)\n    @abstractmethod\n"
        "    async def ensure_absent",
        ("tests/unit/test_fenced_calls.py",),
    ),
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
