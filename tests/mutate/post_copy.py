"""Faults in moves by post-copy, where half of a guest's memory is on either node."""

from tests.mutate.fault import Fault

SIMULATED, REAL = "tests/sim/test_post_copy.py", "tests/contract/test_post_copy.py"
HALVES, COURSES = "tests/sim/test_halves.py", "tests/unit/operations/test_rest_of_memory.py"

BY_POST_COPY = (
    Fault(
        "halves taken for settled", "an instance may be on both nodes until it is whole",
        "coordinator/operations/instance/migrate.py",
        "maybe_on=nodes if plan.post_copy else ()", "maybe_on=()",
        (SIMULATED,),
    ),
    Fault(
        "lost half waited for", "what is nowhere any more is not waited for",
        "coordinator/operations/instance/rest_of_memory.py",
        "        case Rest.CUT, Rest.NONE:\n            return Course.LOST\n", "",
        (COURSES, SIMULATED),
    ),
    Fault(
        "half ended where it is needed", "neither half is ended while the guest can go on",
        "coordinator/operations/instance/rest_of_memory.py",
        "        case Rest.COMES, Rest.COMES | Rest.NONE:  # the latter in its last moment\n"
        "            return Course.COMES\n",
        "        case Rest.COMES, Rest.COMES | Rest.NONE:\n            return Course.OVER\n",
        (COURSES, SIMULATED),
    ),
    Fault(
        "half in the way of a failover", "half of what has died keeps nobody from starting it",
        "coordinator/operations/instance/failover.py",
        "return found is not None and bool(found.rest)", "return False",
        (HALVES,),
    ),
    Fault(
        "half asked to power off", "half of a guest is not ended by who only wants it to end well",
        "coordinator/operations/instance/shutdown.py",
        "    if found is not None and found.rest:\n", "    if False:\n",
        (HALVES,),
    ),
    Fault(
        "half stopped to be booted", "half of a guest is not ended to be started again",
        "coordinator/operations/instance/reboot.py",
        "        elif not soft:\n            check_settled(cluster, instance)\n", "",
        (HALVES,),
    ),
    Fault(
        "half refused what it waits for", "what waits for its memory need not answer to get it",
        "coordinator/operations/instance/whereabouts.py",
        "    return guest.state.is_alive or waits\n", "    return guest.state.is_alive\n",
        (HALVES,),
    ),
    Fault(
        "half kept for the dead", "half of what is lost is ended without asking a dead node",
        "coordinator/operations/instance/cleanup.py",
        "    if plan.runs or plan.resume:\n", "    if True:\n",
        (HALVES,),
    ),
    Fault(
        "dead node's disks waited for", "a node that is marked offline lets go of nothing",
        "coordinator/operations/instance/cleanup.py",
        "    if not home.offline:\n", "    if True:\n",
        (HALVES,),
    ),
    Fault(
        "half cleared away", "what is left of a guest's memory is no mere remnant",
        "noded/hypervisor/kvm/lives.py",
        "                    raise half_here(home)\n", "                    pass\n",
        (REAL,),
    ),
    Fault(
        "line cut behind it", "the rest of a guest's memory follows on the line of its move",
        "noded/hypervisor/kvm/migration.py",
        "    if not (home.has_left or home.has_begun_post_copy):\n        cut(line)\n",
        "    cut(line)\n",
        (REAL,),
    ),
    Fault(
        "switch written down and not told", "a noded that is killed leaves no move without end",
        "noded/hypervisor/kvm/migration.py",
        "now.rounds >= PASSES and not is_switching",
        "now.rounds >= PASSES and not home.has_begun_post_copy",
        (REAL,),
    ),
    Fault(
        "disks left to nobody", "a guest that fails to switch goes on with its disks",
        "noded/hypervisor/kvm/migration.py",
        "            case GuestState.RUNNING if home.has_begun_post_copy:\n",
        "            case GuestState.RUNNING if False:\n",
        ("tests/unit/noded/hypervisor/test_kvm_migration.py",),
    ),
    Fault(
        "spares pile up", "a QEMU that waits for memory obeys what it is told at once",
        "noded/hypervisor/kvm/lifelines.py",
        "    async with monitor(home.qmp_socket, name, patience_s=LOOK_EVERY_S):\n"
        "        await lifeline.refill()\n",
        "    await lifeline.refill()\n",
        ("tests/unit/noded/hypervisor/test_lifelines.py",),
    ),
    Fault(
        "line of a slow guest cut", "a line is mended only if it is cut",
        "coordinator/operations/instance/rest_of_memory.py",
        "not (there.rest and sends is Rest.CUT)", "not (there.rest and sends)",
        (SIMULATED,),
    ),
    Fault(
        "line mended for ever", "a job whose every line breaks has an end",
        "coordinator/operations/instance/rest_of_memory.py",
        "            elif cluster.steady() >= limit:\n", "            elif False:\n",
        (SIMULATED,),
    ),
    Fault(
        "left before it is sure", "a guest has left when its source cannot go on any more",
        "noded/hypervisor/kvm/progress.py",
        'and not ram.get("postcopy-bytes")', "and False",
        ("tests/unit/noded/hypervisor/test_kvm_parse.py",),
    ),
)  # fmt: skip
