"""Faults in how nodes come back, are renamed, move to other addresses, are emptied and switched."""

from tests.mutate.fault import Fault

BACK, NAMES = "tests/sim/test_returning_nodes.py", "tests/sim/test_renamed_nodes.py"
ADDRESSES, WORK = "tests/sim/test_node_addresses.py", "tests/sim/test_maintenance.py"
FENCING = "tests/sim/test_fencing.py"
POWER, PROGRAMS = "tests/sim/test_power.py", "tests/contract/test_programs.py"

OF_NODES = (
    Fault(
        "end of a body left aside", "a large call is read to its end", "common/web.py",
        "if self._upgraded or not data:", "if self._upgraded:",
        ("tests/unit/test_web.py",),
    ),
    Fault(
        "fenced by a minority", "a master that is cut off switches nobody off",
        "coordinator/operations/node/fence.py",
        "if obedient <= len(config.nodes) // 2:", "if False:",
        (FENCING,),
    ),
    Fault(
        "fenced on a promise", "a node is marked offline when it is known to be off",
        "coordinator/operations/node/fence.py",
        '["powered"]:\n            return', '["powered"] or True:\n            return',
        (FENCING,),
    ),
    Fault(
        "fenced though it answers", "who answers is not switched off",
        "coordinator/operations/node/fence.py",
        "if not isinstance(silence, Unreachable):", "if False:",
        (FENCING,),
    ),
    Fault(
        "fenced though it is back", "who goes on with the job looks again",
        "coordinator/operations/node/fence.py",
        "    await _check_is_cut_off(cluster, cluster.config.node(node))\n", "",
        (FENCING,),
    ),
    Fault(
        "many fenced at once", "where several nodes are silent people have to look",
        "coordinator/watcher/silent.py",
        "if len(silent) > 1:", "if len(silent) > 9:",
        ("tests/unit/watcher/test_silent.py",),
    ),
    Fault(
        "old key kept", "a machine that comes back is known by its new key alone",
        "coordinator/operations/node/readd.py",
        "_as(state, regular, learnt[0], ", "_as(state, regular, before.key, ",
        (BACK,),
    ),
    Fault(
        "lost key back", "a key that a lost machine was about to have counts no more",
        "coordinator/operations/node/pool.py",
        ", next_key=present.next_key))", "))",
        (BACK,),
    ),
    Fault(
        "old key not revoked", "nobody answers who shows the former certificate",
        "coordinator/operations/node/readd.py",
        "return revoke(state.config, *(key for key in former if key != present))",
        "return iter(())",
        (BACK,),
    ),
    Fault(
        "own key revoked", "a machine that comes back with the key that it had can use it",
        "coordinator/operations/node/readd.py",
        "for key in former if key != present)", "for key in former)",
        (BACK,),
    ),
    Fault(
        "revoked key let in", "who comes with a key that is revoked does not get in",
        "coordinator/operations/node/joining.py",
        "if read_pem(certificate).key in cluster.config.revoked:", "if False:",
        (BACK,),
    ),
    Fault(
        "others' keys allowed again", "undone, a return leaves the certificates of others revoked",
        "coordinator/operations/node/readd.py",
        "allow_again(state.config, former)",
        "allow_again(state.config, state.config.revoked.keys)",
        ("tests/sim/test_operations.py wiped",),
    ),
    Fault(
        "state of the master erased", "who is the master by then stays a candidate, and keeps it",
        "coordinator/operations/node/pool.py",
        "if not cluster.config.nodes[node.uuid].master_candidate:", "if True:",
        ("tests/sim/test_undone_promotions.py",),
    ),
    Fault(
        "lost copy waited for", "copies are made anew where nothing of them is left",
        "coordinator/operations/instance/replacement.py",
        "access is not None and not (is_lost and source.uuid == home.uuid)", "access is not None",
        (BACK,),
    ),
    Fault(
        "candidate under two names", "nobody counts the vote of a candidate that has two names",
        "coordinator/operations/node/rename.py",
        "        if is_candidate:\n            yield change_node(before",
        "        if not is_candidate:\n            yield change_node(before",
        (NAMES,),
    ),
    Fault(
        "disks of reservations missed", "nothing of what is reserved is looked for on a node",
        "coordinator/operations/node/readd.py",
        "config.made_instances", "config.sorted_instances()",
        (BACK,),
    ),
    Fault(
        "one name at a time", "a node answers to the name that is recorded while that changes",
        "coordinator/operations/node/rename.py",
        "            lambda: _certify(cluster, old, also=new.name),\n",
        "            lambda: _certify(cluster, old),\n",
        (NAMES,),
    ),
    Fault(
        "old name kept", "a certificate is good for the new name alone in the end",
        "coordinator/operations/node/rename.py",
        "rename(node=node.name)\n    await _certify(cluster, node)", "rename(node=node.name)",
        (NAMES,),
    ),
    Fault(
        "name without proof", "a node goes by no name that its certificate is not good for",
        "noded/identity/directory.py",
        "        check_identity(self.place, member.node)\n        write_durably",
        "        write_durably",
        ("tests/unit/noded/test_identity_crashes.py",),
    ),
    Fault(
        "address taken on trust", "a node has an address before it is recorded",
        "coordinator/operations/node/modify.py",
        "await check_answers_at(cluster, before, after, may_be_silent=self.force)", "pass",
        (ADDRESSES,),
    ),
    Fault(
        "only one end told", "both ends of a mirror meet at the new address",
        "coordinator/operations/node/links.py",
        "        await hold(cluster, guest, (Hold(node=link.home, access=link.access),))\n", "",
        (ADDRESSES,),
    ),
    Fault(
        "unequal copies parted", "no guest is left with a copy that is not good",
        "coordinator/operations/node/links.py",
        "            if not is_whole(report):", "            if False:",
        (ADDRESSES,),
    ),
    Fault(
        "who stayed is left", "everything comes back when one cannot leave",
        "coordinator/operations/node/maintain.py",
        "return MaintainPlan(jobs=((back,),), stayed=stayed)", "return MaintainPlan(stayed=stayed)",
        (WORK,),
    ),
    Fault(
        "back before it is equal", "a guest comes back when its copy has become equal",
        "coordinator/operations/node/maintain.py",
        "return FollowUp(input=equal), FollowUp(input=order)", "return (FollowUp(input=order),)",
        (WORK,),
    ),
    Fault(
        "not waited for the boot", "a node that was power-cycled is waited for",
        "coordinator/operations/node/powercycle.py",
        'in ("", plan.boot_id):\n        if', 'in ():\n        if',
        (WORK,),
    ),
    Fault(
        "any node switched off", "what is in service is not switched off by mistake",
        "coordinator/operations/node/power.py",
        "not (node.offline or self.ignore_status)", "False",
        (POWER,),
    ),
    Fault(
        "any answer taken", "what a program says of a machine is checked",
        "coordinator/operations/node/power.py",
        "            return state in STATES", "            return True",
        (POWER,),
    ),
    Fault(
        "programs from anywhere", "only what is in root's directory is run as root",
        "noded/programs/directory.py",
        "if path.parent != self._out_of_band or", "if",
        (PROGRAMS,),
    ),
    Fault(
        "programs of others", "what others could have changed is not run as root",
        "noded/programs/directory.py",
        "        check_roots_own(path.parent)\n", "",
        (PROGRAMS,),
    ),
)  # fmt: skip
