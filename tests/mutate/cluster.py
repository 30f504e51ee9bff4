"""Faults in what the cluster as a whole promises: who is out, the master's address, its reach."""

from tests.mutate.fault import Fault

ADDRESS = "tests/sim/test_master_address.py"
REMOTE = "tests/contract/test_remote.py"
FINDINGS = "tests/unit/checks/test_findings.py"

REVOCATIONS = "tests/sim/test_revocations.py"

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
        ", *revoke(state.config, node.key, node.next_key)]", "]",
        ("tests/sim/test_membership.py revoked",),
    ),
    Fault(
        "list taken without proof", "a node takes no list that is not the one that was told",
        "common/revoked_keys.py",
        "return whole if whole.held == HeldKeys(count=told.count, digest=told.digest) else None",
        "return whole",
        (REVOCATIONS, "tests/unit/test_revoked_keys.py"),
    ),
    Fault(
        "liar told without end", "who says to lack what it was told is told once a change",
        "coordinator/operations/node/roster.py",
        "    return _known(held, roster, revoked)\n",
        "    if _known(held, roster, revoked) is Knows.OTHERS:\n        raise NotFound(\"\")\n"
        "    return Knows.ALL\n",
        (REVOCATIONS,),
    ),
    Fault(
        "half a telling counted", "what a job could not tell is told by who came too late for it",
        "coordinator/master/publisher.py",
        "elif knows is Knows.OTHERS_AS_TOLD_LATER and", "elif False and",
        (REVOCATIONS,),
    ),
    Fault(
        "revocations not published", "who was away hears of keys that were revoked meanwhile",
        "coordinator/master/publisher.py",
        "return cls(config.nodes, config.table(REVOKED_KEY))", "return cls(config.nodes, {})",
        (REVOCATIONS,),
    ),
    Fault(
        "older disk not told", "a node that was started anew is told all that it was told before",
        "coordinator/master/publisher.py",
        "if self._lives.get(node) != self._nodes.lives.number(node):", "if False:",
        (REVOCATIONS,),
    ),
    Fault(
        "older disk keeps users", "a user who was removed is let in by no disk of last week",
        "coordinator/master/news.py",
        "told.life == self.nodes.lives.number(node.uuid)", "True",
        ("tests/sim/test_rest_users.py",),
    ),
    Fault(
        "new lives without end", "who names another life with each answer is told now and then",
        "coordinator/nodes/lives.py",
        "known.process != process and now_s >= known.until_s:", "known.process != process:",
        ("tests/unit/nodes/test_lives.py",),
    ),
    Fault(
        "half a line kept", "what follows a line that was half written is read",
        "noded/calls/revoked.py",
        "len(keys) == len(lines) and not rest", "True",
        ("tests/unit/noded/test_revoked_file.py",),
    ),
    Fault(
        "keys forgotten too early", "keys stay revoked while a node may trust who signed for them",
        "coordinator/operations/cluster/new_authority.py",
        "is_safe = not why", "is_safe = True",
        ("tests/sim/test_forgotten_keys.py",),
    ),
    Fault(
        "keys of a stuck attempt forgotten",
        "keys stay revoked that an authority has signed for which was made before",
        "coordinator/operations/cluster/renew_crypto.py",
        "is_first=NEXT_KEY not in cluster.state.secrets", "is_first=True",
        ("tests/sim/test_new_authority.py",),
    ),
    Fault(
        "revoked name believed", "where a key is not known, one that is revoked does not count",
        "noded/calls/roster.py",
        "(is_of_any_key and peer.key not in self.revoked)", "is_of_any_key",
        ("tests/unit/noded/test_caller.py",),
    ),
    Fault(
        "list ends where it is damaged", "keys after a line that cannot be read stay revoked",
        "noded/calls/revoked.py",
        "for line in lines if _KEY.fullmatch(line))",
        "for line in __import__(\"itertools\").takewhile(_KEY.fullmatch, lines))",
        ("tests/unit/noded/test_revoked_file.py",),
    ),
    Fault(
        "older list taken", "what arrives late takes no revocation back",
        "noded/calls/roster.py",
        "            if roster.age >= self.roster.age:\n", "            if True:\n",
        (REVOCATIONS,),
    ),
    Fault(
        "former authority trusted on", "who shows a certificate of a replaced authority is out",
        "noded/daemon/server.py",
        "and known in self._trusted:", "and True:",
        ("tests/contract/test_noded_certificates.py authority",),
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
        "        yield from revoke(state.config, node.key)\n", "",
        ("tests/sim/test_new_keys.py",),
    ),
    Fault(
        "the next key not used after a crash", "a node comes back with the key of its certificate",
        "noded/identity/directory.py",
        "            if fit_together(self.place / CERTIFICATE, self.place / NEXT_KEY):\n"
        "                self._use_next_key()\n", "",
        ("tests/unit/noded/test_identity_crashes.py",),
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
        ("tests/sim/test_distributed_files.py",),
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
