"""Faults in what the cluster as a whole promises: who is out, the master's address, its reach."""

from tests.mutate.fault import Fault

ADDRESS = "tests/sim/test_master_address.py"
REMOTE = "tests/contract/test_remote.py"
FINDINGS = "tests/unit/checks/test_findings.py"

CLUSTER = (
    Fault(
        "removed node let in", "a revoked certificate gets no answer",
        "noded/daemon/gate.py",
        "if peer and self._is_revoked(peer):", "if False:",
        ("tests/contract/test_noded_callers.py removed",),
    ),
    Fault(
        "removed node not revoked", "who is removed is revoked on all others",
        "coordinator/operations/node/remove.py",
        ", Put(state.config.cluster.revoking(node.key, node.next_key))]", "]",
        ("tests/sim/test_membership.py revoked",),
    ),
    Fault(
        "former authority trusted on", "who shows a certificate of a replaced authority is out",
        "noded/daemon/server.py",
        "and known in self._trusted:", "and True:",
        ("tests/contract/test_noded_joins.py authority",),
    ),
    Fault(
        "replaced without a node", "the authority is replaced on all nodes or on none",
        "coordinator/operations/cluster/new_authority.py",
        "if node.offline]:", "if False]:",
        ("tests/sim/test_new_authority.py",),
    ),
    Fault(
        "next key not told", "who gives orders is known by either key while it gets another one",
        "coordinator/state/config.py",
        "return {name: key for name, key in following.items() if key}", "return {}",
        ("tests/sim/test_new_keys.py", FINDINGS),
    ),
    Fault(
        "former key not revoked", "a former key opens nothing",
        "coordinator/operations/node/renew_key.py",
        "        yield Put(state.config.cluster.revoking(node.key))\n", "",
        ("tests/sim/test_new_keys.py",),
    ),
    Fault(
        "the next key not used after a crash", "a node comes back with the key of its certificate",
        "noded/identity/directory.py",
        "            if fit_together(self.place / CERTIFICATE, self.place / NEXT_KEY):\n"
        "                self._use_next_key()\n", "",
        ("tests/unit/noded/test_identity_store.py",),
    ),
    Fault(
        "links read", "nothing is read where others could have changed the way",
        "noded/remote/files.py",
        "        try:\n            _check_way(place, self._paths.root)\n",
        "        try:\n            pass\n",
        (REMOTE,),
    ),
    Fault(
        "any size believed", "a disk that is said to be far larger than it can be is refused",
        "noded/copies/target.py",
        "disk.size + MOST_BEYOND", "1 << 70",
        ("tests/unit/noded/copies",),
    ),
    Fault(
        "signed by the former", "all nodes show what the new authority has signed",
        "coordinator/operations/cluster/new_authority.py",
        "by_next=by_next)", "by_next=False)",
        ("tests/sim/test_new_authority.py",),
    ),
    Fault(
        "address without certainty", "a master that is not certain goes without its address",
        "coordinator/master/address.py",
        "obeyed_s > CERTAIN_S:", "obeyed_s > 1e9:",
        (ADDRESS,),
    ),
    Fault(
        "address taken at once", "no two nodes have the master's address",
        "coordinator/master/address.py",
        "if silent and left_s > 0:", "if False:",
        (ADDRESS,),
    ),
    Fault(
        "address asked of nobody", "the former master is told to let go of the address",
        "coordinator/master/address.py",
        "if n.name != self._me and not n.offline]", "if False]",
        (ADDRESS,),
    ),
    Fault(
        "address for good", "the kernel takes the address back",
        "noded/network/netlink.py",
        "valid_lft=address.seconds,", "valid_lft=FOR_GOOD,",
        ("tests/contract/test_master_address.py",),
    ),
    Fault(
        "neighbours not told", "neighbours hear of an address when it comes",
        "noded/network/held.py",
        "    if is_news:", "    if False:",
        ("tests/contract/test_master_address.py",),
    ),
    Fault(
        "any file put", "only files that root allows are put on a node",
        "noded/remote/files.py",
        " or not _is_among(path, rules):", ":",
        (REMOTE,),
    ),
    Fault(
        "links followed", "nothing is put where others could have changed the way",
        "noded/remote/files.py",
        "        user, group = _ids(file)\n        _check_way(place, self._paths.root)\n",
        "        user, group = _ids(file)\n",
        (REMOTE,),
    ),
    Fault(
        "commands for all", "commands are run only where root allows them",
        "noded/remote/shell.py",
        "if not rules.has_shell:", "if False:",
        (REMOTE,),
    ),
    Fault(
        "file of the wrong master", "files come from who was master when it was asked for",
        "coordinator/operations/cluster/redist_conf.py",
        "copy_file(cluster, plan.source,", "copy_file(cluster, cluster.config.master(),",
        ("tests/sim/test_operations.py redistribute",),
    ),
    Fault(
        "spare memory of one instance", "all instances of a failed node need memory",
        "coordinator/checks/placement.py",
        'needed[instance.primary_node] += filled["maxmem"]',
        'needed[instance.primary_node] = filled["maxmem"]',
        ("tests/sim/test_verify.py",),
    ),
    Fault(
        "skipped check made", "a check that is to be left out is left out",
        "coordinator/checks/every.py",
        "if check not in left_out)", "if check)",
        ("tests/sim/test_verify.py",),
    ),
)  # fmt: skip
