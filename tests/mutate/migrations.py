"""Faults in moves of what runs, and in how these are undone."""

from tests.mutate.fault import Fault

OPERATIONS = "tests/sim/test_operations.py"
INVARIANTS = "tests/sim/test_invariants.py"
CANCELLED_JOBS = "tests/sim/test_cancelled_jobs.py"
CANCELLING = "tests/sim/test_cancelling.py"

MIGRATIONS = (
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
        (CANCELLING,),
    ),
    Fault(
        "cancellation forgotten", "a cancellation that was promised outlives its coordinator",
        "coordinator/jobs/cancelling.py",
        "running.change(cancel_wanted=True)", "running.change(cancel_wanted=False)",
        (INVARIANTS, CANCELLING),
    ),
)  # fmt: skip
