"""Faults in how disks are copied from node to node, and in exports."""

from tests.mutate.fault import Fault

COPIES, CONTRACT = "tests/sim/test_copies.py", "tests/contract/test_copies.py"
TARGET, CHUNKS = (
    "tests/unit/noded/copies/test_target.py",
    "tests/unit/noded/copies/test_chunks.py",
)
DOOR = "tests/contract/test_copy_door.py"  # what a process does is not in a copy of the tree
EXPORTS = "tests/contract/test_exports.py"
BRINGING, EXPECTING = (
    "tests/contract/test_copy_bringing.py",
    "tests/contract/test_copy_expecting.py",
)
BETWEEN, MOVES = (
    "tests/contract/test_copies_between_clusters.py",
    "tests/sim/test_moves_between_clusters.py",
)
DARK, DISTURBED = (
    "tests/sim/test_power_lost_between_clusters.py",
    "tests/sim/test_disturbed_between_clusters.py",
)
RENAMED, DURABLE = (
    "tests/sim/test_renamed_on_the_way.py",
    "tests/contract/test_durable_scripts.py",
)
BY_SCRIPT, ENDING = "tests/sim/test_moves_by_script.py", "tests/unit/noded/copies/test_ending.py"

OF_COPIES = (
    Fault(
        "disk for any node", "a disk is for the node that it is offered to",
        "noded/copies/door.py",
        "if shown is None or shown.node != peer.name or", "if shown is None or",
        (DOOR,),
    ),
    Fault(
        "disk without a secret", "a disk is for who knows the secret of its offer",
        "noded/copies/door.py",
        "    return hmac.compare_digest(hello.secret.encode(), secret.encode())", "    return True",
        (DOOR,),
    ),
    Fault(
        "damaged chunk written", "what arrives is checked before it is written",
        "noded/copies/target.py",
        "if not is_as_long or chunks.sum_of(chunk) != expected:", "if False:",
        (TARGET,),
    ),
    Fault(
        "old data left", "what was on a disk is gone when it is copied onto, zeros included",
        "noded/copies/target.py",
        "        self._zero(index * chunks.CHUNK, end)\n", "",
        (TARGET, CONTRACT),
    ),
    Fault(
        "chunk of any size", "no packed chunk becomes larger than a chunk",
        "noded/copies/chunks.py",
        "inflater.decompress(packed, CHUNK + 1)", "inflater.decompress(packed)",
        (CHUNKS,),
    ),
    Fault(
        "disk in use copied", "a disk that a guest uses is not copied",
        "noded/copies/driver.py",
        "        claim(descriptor, disk.backing.where, to_write=mode is Mode.READ_WRITE)\n", "",
        (CONTRACT,),
    ),
    Fault(
        "copy begun twice", "a copy goes on while noded is restarted",
        "noded/copies/driver.py",
        "        if self._runs(home) and (offer := home.offer()):\n", "        if offer := None:\n",
        (CONTRACT,),
    ),
    Fault(
        "copy given up at once", "a copy that breaks off goes on",
        "coordinator/operations/steps/persevering.py",
        "except (BrokenOff, NotFound, Unreachable) as error:", "except NotFound as error:",
        (COPIES,),
    ),
    Fault(
        "dead target waited for", "an instance does not wait for a node that nothing is needed of",
        "coordinator/operations/steps/copies.py",
        "            if side.may_be_left:\n", "            if False:\n",
        (COPIES,),
    ),
    Fault(
        "export seen too early", "an export is seen when it is complete",
        "noded/exports/directory.py",
        'self._root / f".{export}.new"', "self._root / export",
        (EXPORTS,),
    ),
    Fault(
        "second restart not waited for", "a copy waits for a node each time that it restarts",
        "coordinator/operations/steps/persevering.py",
        "if done > furthest or cluster.steady() - begun_at > PATIENCE_S:", "if done > furthest:",
        (COPIES,),
    ),
    Fault(
        "disk sent anywhere", "a disk goes where a cluster that is trusted expects it",
        "coordinator/operations/backup/trust.py",
        "_PLACES.items() if self._is_signed(what, text, signature, salt)", "_PLACES.items()",
        (MOVES,),
    ),
    Fault(
        "disk taken from anybody", "a disk is taken from the node of a cluster that is trusted",
        "coordinator/operations/backup/trust.py",
        "        if not is_it:\n", "        if False:\n",
        (MOVES,),
    ),
    Fault(
        "arrived and given up", "what has come from another cluster stays",
        "coordinator/operations/steps/expected_disks.py",
        """        f"receive the disks of {name} from another cluster",
        do=do,
        undo=lambda: end_all(cluster, sides, carrier),
        point_of_no_return=True,""",
        """        f"receive the disks of {name} from another cluster",
        do=do,
        undo=lambda: end_all(cluster, sides, carrier),
        point_of_no_return=False,""",
        (MOVES,),
    ),
    Fault(
        "expected elsewhere", "who breaks off finds who expects a disk where it was",
        "noded/copies/driver.py",
        "before.port if before else 0", "0",
        (BETWEEN,),
    ),
    Fault(
        "disk of another secret", "who brings a disk brings it to who expects that very one",
        "noded/copies/bringing.py",
        "            if not knows(hello, self._order.offer.secret):\n", "            if False:\n",
        (BRINGING,),
    ),
    Fault(
        "verdict not heeded", "a disk counts as sent when all of it is durable there",
        "noded/copies/bringing.py",
        "            if verdict.problem:\n", "            if False:\n",
        (BRINGING,),
    ),
    Fault(
        "end not confirmed", "who did not hear that all is there is told again",
        "noded/copies/expecting.py",
        "            line.hear(Heard)\n", "",
        (EXPECTING,),
    ),
    Fault(
        "half a disk complete", "a disk that is begun anew is not complete before its end",
        "noded/copies/expecting.py",
        "                self._is_there = False  # until shown: it may begin anew\n", "",
        (EXPECTING,),
    ),
    Fault(
        "let go of before it is recorded", "who sends an instance lets go of what is recorded",
        "coordinator/operations/backup/receiving.py",
        "to_be_confirmed=True", "to_be_confirmed=False",
        (DARK,),
    ),
    Fault(
        "all disks confirmed", "of one disk at least nobody hears before all are recorded",
        "noded/copies/home.py",
        "        return not (path.exists() and path.stat().st_size)\n", "        return True\n",
        ("tests/unit/noded/copies/test_last_to_come.py",),
    ),
    Fault(
        "told before it is confirmed", "who sends a disk hears that it is there when it is said",
        "noded/copies/expecting.py",
        """                self._see_confirmed(line)
                line.say(Verdict())
""",
        """                self._status.arrive()
                line.say(Verdict())
""",
        (EXPECTING,),
    ),
    Fault(
        "nobody heard, and it is started", "what may be started elsewhere is not started here",
        "noded/copies/expecting.py",
        "if self._is_there and (self._is_heard or self._order.confirmation is None):",
        "if self._is_there:",
        (EXPECTING,),
    ),
    Fault(
        "heard before it is let go of", "who starts an instance is the only one",
        "noded/copies/bringing.py",
        "            self._see_let_go(line)\n", "            self._status.arrive()\n",
        (BRINGING,),
    ),
    Fault(
        "let go of by half", "who starts an instance is the only one, whoever gives up, and when",
        "coordinator/operations/steps/sent_disks.py",
        "            until_confirmed=True,\n", "            until_confirmed=False,\n",
        (DISTURBED,),
    ),
    Fault(
        "work of a script in memory", "what a script has made of what came is on the disk",
        "noded/operating_systems/durable.py",
        "            os.fsync(disk)\n", "            pass\n",
        (DURABLE,),
    ),
    Fault(
        "script ended with its secrets", "a script that nobody could begin again goes on",
        "coordinator/operations/steps/scripts.py",
        "                await systems.look(run=id, offset=0)\n",
        "                raise NotFound\n",
        (RENAMED,),
    ),
    Fault(
        "come and not renamed", "what comes under another name is told its own",
        "coordinator/operations/backup/receiving.py",
        "if (renaming := receiving.renaming) is not None:", "if renaming := None:",
        (RENAMED,),
    ),
    Fault(
        "problem in the middle", "who cannot read a disk says why, whatever he has sent before",
        "noded/copies/filling.py",
        "if frame.kind is not Kind.PROBLEM and frame.number != expected:",
        "if frame.number != expected:",
        (EXPECTING,),
    ),
    Fault(
        "killed and believed", "what a script that was killed has written or read does not count",
        "noded/copies/ending.py",
        '            return "was killed"\n', '            return ""\n',
        (ENDING,),
    ),
    Fault(
        "failed and believed", "what a script has written or read counts if it has ended well",
        "noded/copies/ending.py",
        'if status == b"0" else', 'if status else',
        (ENDING,),
    ),
    Fault(
        "read on by a script", "what broke off in the middle of a script is begun anew",
        "coordinator/operations/steps/carriers.py",
        "        self._spent.add(index)\n", "        return\n",
        (BY_SCRIPT,),
    ),
    Fault(
        "script asked for its secrets again", "a script that goes on is told nothing anew",
        "coordinator/operations/steps/carriers.py",
        "            await systems.look(run=id, offset=0)\n",
        "            raise NotFound\n",
        (BY_SCRIPT,),
    ),
    Fault(
        "untrusted scripts on two clusters", "scripts that wait for one another are not run",
        "coordinator/operations/backup/by_script.py",
        "    if found is None or not found.is_trusted:\n", "    if found is None:\n",
        (BY_SCRIPT,),
    ),
)  # fmt: skip
