"""Faults in what is promised about instances that are only reserved."""

from tests.mutate.fault import Fault

STORIES = "tests/sim/test_reservations.py"
CHANGED = "tests/sim/test_changed_reservations.py"

RESERVATIONS = (
    Fault(
        "time taken away", "what is reserved stays for as long as it was given",
        "coordinator/operations/instance/reserved_changes.py",
        "now + parse_duration(expires)", "now - parse_duration(expires)",
        (CHANGED,),
    ),
    Fault(
        "reservations stopped with all", "many are chosen of those to which it can be done",
        "coordinator/cli/selection.py",
        'if reserved or not row.get("forthcoming")', "if True",
        ("tests/unit/cli/test_selection.py",),
    ),
    Fault(
        "memory of reservations forgotten", "what is reserved takes memory as if it ran",
        "common/model/instance.py",
        "return self.forthcoming or self.admin_state is AdminState.UP",
        "return self.admin_state is AdminState.UP",
        (CHANGED,),
    ),
    Fault(
        "space of reservations forgotten", "what is reserved takes space of its pools",
        "coordinator/operations/placement/room.py",
        "return taken + self._reserved[node.uuid] + self._reserved[None]", "return taken",
        (STORIES,),
    ),
    Fault(
        "reservations given up count beside", "what is reserved makes room for what it becomes",
        "coordinator/operations/placement/room.py",
        "if is_reserved or disk.uuid in kept", "if disk.uuid in kept",
        (CHANGED,),
    ),
    Fault(
        "reservations looked for on nodes", "verify looks for nothing of what is reserved",
        "coordinator/state/config.py",
        "if not each.forthcoming)", ")",
        (STORIES,),
    ),
    Fault(
        "reservations started", "what needs an instance that is there is refused",
        "coordinator/operations/base.py",
        "if instance and instance.forthcoming and not self.takes_reservations:",
        "if False:",
        (STORIES,),
    ),
    Fault(
        "made instances expire", "what was made before it expired stays",
        "coordinator/operations/instance/remove.py",
        "            _check_expired(instance, cluster.now())\n", "            pass\n",
        (STORIES,),
    ),
    Fault(
        "something else made than reserved", "what is made is what was reserved",
        "coordinator/operations/instance/commit.py",
        "        self._check_same(config, reserved)\n", "",
        ("tests/sim/test_made_of_reservations.py",),
    ),
    Fault(
        "growth of reservations free", "what a reservation takes more has to be there",
        "coordinator/operations/instance/reserved_disks.py",
        "        check_free_space(look, node, promise.planned)\n", "",
        (CHANGED,),
    ),
    Fault(
        "reservation lost when it cannot be made", "a failure leaves what is reserved as it was",
        "coordinator/operations/instance/commit.py",
        "        return [Put(plan.reserved)]", "        return []",
        ("tests/sim/test_operations.py restores and make and reserved",),
    ),
    Fault(
        "forgotten though cancelled", "what a cancelled job had done is undone",
        "coordinator/operations/instance/remove.py",
        "undo=lambda _: [Put(item) for item in _items(plan)]", "undo=lambda _: []",
        ("tests/sim/test_cancelled_jobs.py",),
    ),
    Fault(
        "a cleanup that was not", "what is said to be undone is undone, or the job has succeeded",
        "coordinator/operations/instance/cleanup.py",
        "        point_of_no_return=True,\n", "",
        ("tests/sim/test_operations.py during_its_last and clean",),
    ),
    Fault(
        "routed to nowhere", "what could never be made is not reserved",
        "coordinator/operations/instance/create.py",
        "        check_parameters(bad_of_nics(config, instance, nics))\n", "",
        ("tests/sim/test_reservations.py makes_no_sense",),
    ),
)  # fmt: skip
