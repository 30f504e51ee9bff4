"""Faults in what is known of where an instance is, and in the cancelling of moves and jobs."""

from tests.mutate.fault import Fault

OPERATIONS = "tests/sim/test_operations.py"
CANCELLED_JOBS = "tests/sim/test_cancelled_jobs.py"
CANCELLING = "tests/sim/test_cancelling.py"
HALF_MOVED = "tests/sim/test_half_moved.py"
MIGRATIONS, CANCELLED = "tests/sim/test_migrations.py", "tests/sim/test_cancelled_migrations.py"

MOVES = (
    # coordinator: where an instance may be
    Fault(
        "move not announced", "from before its transfer on, an instance may be on both nodes",
        "coordinator/operations/instance/migrate.py",
        "set_maybe_on(plan.instance, nodes, plan.now),",
        "set_maybe_on(plan.instance, (), plan.now),",
        (MIGRATIONS,),
    ),
    Fault(
        "settled before it is", "it is open where an instance is until nothing is left elsewhere",
        "coordinator/operations/instance/cleanup.py",
        "    instances, guest = cluster.call(Instances, plan.source), plan.guest.id\n",
        "    instances, guest = cluster.call(Instances, plan.source), plan.guest.id\n"
        "    yield record(\n"
        '        f"record that {plan.guest.name} is on its node",\n'
        "        set_primary(plan.instance, plan.source.uuid, plan.now),\n"
        "    )\n",
        (HALF_MOVED,),
    ),
    Fault(
        "never settled", "an instance that has moved is on its new node only",
        "coordinator/operations/steps/edits.py",
        "primary_node=node, maybe_on=maybe_on, ", "primary_node=node, ",
        (f"{OPERATIONS} migrate", MIGRATIONS),
    ),
    Fault(
        "never settled by a start", "an instance that was started is on its node only",
        "coordinator/operations/instance/startup.py",
        "maybe_on=() if was_running else instance.maybe_on,", "maybe_on=(),",
        (MIGRATIONS,),
    ),
    Fault(
        "started while it may be elsewhere", "a node on which it may be has to say that it is not",
        "coordinator/operations/steps/checks.py",
        "            if suspected:\n", "            if False:\n",
        (MIGRATIONS,),
    ),
    Fault(
        "started beside its shell", "a node on which it may be has nothing of it",
        "coordinator/operations/steps/checks.py",
        "(found.state.may_run or suspected)", "found.state.may_run",
        (HALF_MOVED,),
    ),
    Fault(
        "disks left attached by a move", "what is started has its disks on its own node alone",
        "coordinator/operations/steps/disks.py",
        "    for node in others if guest.disks else ():\n", "    for node in ():\n",
        (HALF_MOVED,),
    ),
    Fault(
        "guest moved as it is configured", "a guest arrives in the way it runs, whatever is set",
        "coordinator/operations/instance/as_it_runs.py",
        "guest.parameters, pinned, what=what", "pinned, guest.parameters, what=what",
        (HALF_MOVED,),
    ),
    Fault(
        "pair changed and not recorded", "a guest moves to a node that the configuration knows of",
        "coordinator/operations/instance/migrate.py",
        "    yield record_pair(anew)\n", "",
        ("tests/sim/test_mirrored_anywhere.py",),
    ),
    Fault(
        "start not postponed", "who waits for a copy has nothing given up before it is there",
        "coordinator/operations/instance/failing_over.py",
        "start_there_in_sync if waits else start_there", "start_there",
        ("tests/sim/test_postponed_starts.py",),
    ),
    Fault(
        "not back without the base", "a guest goes on where it was though the other copy fails",
        "coordinator/operations/instance/failing_over.py",
        "take_back=None if plan.pairing else back", "take_back=back",
        ("tests/sim/test_postponed_starts.py",),
    ),
    Fault(
        "remnant told to go on", "what has left never runs again, whatever noded had it do before",
        "noded/hypervisor/kvm/standstill.py",
        "            case GuestState.RUNNING | GuestState.PAUSED:\n"
        "                async with monitor(home.qmp_socket, name_of(home)) as session:\n",
        "            case GuestState.RUNNING | GuestState.PAUSED | GuestState.MIGRATED:\n"
        "                async with monitor(home.qmp_socket, name_of(home)) as session:\n",
        ("tests/contract/test_guest_moves_kvm.py comes_back",),
    ),
    Fault(
        "moved while it may be elsewhere", "what may be elsewhere is neither moved nor removed",
        "coordinator/operations/instance/whereabouts.py",
        "    if instance.maybe_on:\n", "    if False:\n",
        (MIGRATIONS,),
    ),
    Fault(
        "shut down on its own node only", "a shutdown ends an instance wherever it may be",
        "coordinator/operations/instance/whereabouts.py",
        "        for uuid in instance.maybe_on\n", "        for uuid in ()\n",
        (MIGRATIONS,),
    ),
    Fault(
        "silent node left out", "a node that cannot be asked may have the instance",
        "coordinator/operations/instance/whereabouts.py",
        "        if isinstance(guests, GntError):\n            raise NodeFailure(",
        "        if isinstance(guests, GntError):\n            continue\n"
        "            raise NodeFailure(",
        (HALF_MOVED,),
    ),
    Fault(
        "come by any move", "what has come goes on if its source says that it left by that move",
        "coordinator/operations/instance/whereabouts.py",
        "[each for each in waits if each.guest.move in left]", "[*waits]",
        (MIGRATIONS, "tests/unit/operations/test_whereabouts.py"),
    ),
    Fault(
        "given up before it says that it came", "what has left is not given up on a silent node",
        "coordinator/operations/instance/whereabouts.py",
        "    if sent and not came:\n", "    if False:\n",
        (HALF_MOVED,),
    ),
    Fault(
        "patience while memory is sent", "a long move ends as patiently as a short one",
        "coordinator/operations/instance/transfer.py",
        "limit += cluster.steady() - began", "pass",
        (MIGRATIONS,),
    ),
    Fault(
        "remnant of what may be there", "a node that comes back keeps what may be there",
        "coordinator/operations/node/remnants.py",
        "(instance.primary_node, *instance.maybe_on)", "(instance.primary_node,)",
        (HALF_MOVED,),
    ),
    # coordinator: cancelling
    Fault(
        "cancelled before its source said so", "a move is undone once its source says that it is",
        "coordinator/operations/instance/transfer.py",
        "if wish and not left and await _stays(cluster, plan):", "if wish and not left:",
        (CANCELLED, MIGRATIONS),
    ),
    Fault(
        "cancelled at the first error", "who cancels a move asks its source until it answers",
        "coordinator/operations/instance/transfer.py",
        "passes = left or wish or isinstance(", "passes = left or isinstance(",
        (CANCELLED,),
    ),
    Fault(
        "left taken for stayed", "a guest that has left is not taken for one that stays",
        "coordinator/operations/instance/transfer.py",
        "    if found is None or found.state is GuestState.MIGRATED:\n        return False\n",
        "    if found is None:\n        return False\n",
        (CANCELLED,),
    ),
    Fault(
        "promised while it returns", "a cancellation is promised once it is known to come true",
        "coordinator/jobs/cancelling.py",
        "        if running.is_returning:\n", "        if False:\n",
        (CANCELLING, CANCELLED),
    ),
    Fault(
        "promised after it returned", "a cancellation that came too late is not promised",
        "coordinator/jobs/cancelling.py",
        "if not undone and (refusal := running.too_late()):", "if False:",
        (CANCELLING, CANCELLED),
    ),
    Fault(
        "success after a promise", "a job whose cancellation was promised does not succeed",
        "coordinator/jobs/recipe.py",
        "            await journal.fail(error)\n    if journal.failure:",
        "            pass\n    if journal.failure:",
        (CANCELLING, "tests/unit/jobs", CANCELLED_JOBS),
    ),
)  # fmt: skip
