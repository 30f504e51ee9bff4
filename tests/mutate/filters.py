"""Faults in what filter rules promise."""

from tests.mutate.fault import Fault

SIM, HELD = "tests/sim/test_filters.py", "tests/unit/jobs/test_held.py"
FILTERING = "tests/unit/jobs/test_filtering.py"

FILTERS = (
    Fault(
        "rules in any order", "the rule of the lowest priority decides",
        "coordinator/jobs/filtering.py",
        "sorted(effective, key=in_order)", "effective",
        (FILTERING, SIM),
    ),
    Fault(
        "opposite of the unknown", "what an operation lacks is neither true nor false",
        "coordinator/jobs/filtering.py",
        "any(of_operation(op.input) is True for", "any(of_operation(op.input) is not False for",
        (FILTERING,),
    ),
    Fault(
        "limit counts nobody", "so many jobs run at a time as a rule says",
        "coordinator/jobs/held.py",
        "self._begun[key_of(limit)].add(job)", "self._begun[key_of(limit)].discard(job)",
        (HELD, SIM),
    ),
    Fault(
        "room for nobody", "who waits at a limit goes on when there is room",
        "coordinator/jobs/held.py",
        "                yield job", "                return",
        (HELD, SIM),
    ),
    Fault(
        "first limit only", "a job begins when all its limits have room",
        "coordinator/jobs/held.py",
        "        for limit in limits:\n            begun",
        "        for limit in tuple(limits)[:1]:\n            begun",
        (HELD,),
    ),
    Fault(
        "let go without its room", "who is let go has its room until it begins",
        "coordinator/jobs/held.py",
        "                self._count(job, self._limits[job])\n", "",
        (HELD,),
    ),
    Fault(
        "limits of one name are one", "other numbers are other limits",
        "coordinator/jobs/limits.py",
        "    return ReasonLimit(reason,", "    return ReasonLimit(reason.rpartition(':')[2],",
        (HELD, SIM),
    ),
    Fault(
        "jobs that run forgotten", "jobs that run count towards a limit that is new",
        "coordinator/jobs/rules.py",
        "if each.task is not None]\n        rules", "if each.task is None]\n        rules",
        (SIM,),
    ),
    Fault(
        "rules heeded at the next start only", "rules are heeded as soon as they are durable",
        "coordinator/jobs/rules.py",
        "        await self._store.commit([update])\n        self.heed()",
        "        await self._store.commit([update])",
        (SIM,),
    ),
    Fault(
        "rules forgotten at a take-over", "rules outlive the master",
        "coordinator/jobs/queue.py",
        "        self.rules.heed()\n        for number", "        for number",
        (SIM,),
    ),
    Fault(
        "rejected at submission only", "a rule rejects jobs that wait when it is made",
        "coordinator/jobs/rules.py",
        "            self.reject(waiting)", "            pass",
        (SIM,),
    ),
)  # fmt: skip
