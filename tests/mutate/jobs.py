"""Faults in how jobs are carried out, resumed and cancelled, and in their hooks."""

from tests.mutate.fault import Fault

OPERATIONS = "tests/sim/test_operations.py"
INVARIANTS = "tests/sim/test_invariants.py"
JOB_ORDER = "tests/sim/test_job_order.py"
CHOICES = "tests/sim/test_choices.py"

OF_JOBS = (
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
        "taken back twice", "an edit is taken back once, whoever goes on with that",
        "coordinator/jobs/recipe.py",
        'if edited and not journal.has("unedited", step.title):', "if edited:",
        ("tests/unit/jobs/test_recipe.py",),
    ),
    Fault(
        "cancelled when it may be final", "what may be final by now is finished, though cancelled",
        "coordinator/jobs/recipe.py",
        "if not (has_begun and step.point_of_no_return):", "if True:",
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
)  # fmt: skip
