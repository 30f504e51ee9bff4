"""Faults in how disks are copied from node to node, and in exports."""

from tests.mutate.fault import Fault

COPIES, CONTRACT = "tests/sim/test_copies.py", "tests/contract/test_copies.py"
TARGET, CHUNKS = (
    "tests/unit/noded/copies/test_target.py",
    "tests/unit/noded/copies/test_chunks.py",
)
DOOR = "tests/contract/test_copy_door.py"  # what a process does is not in a copy of the tree
EXPORTS = "tests/contract/test_exports.py"

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
        "if len(chunk) != length or chunks.sum_of(chunk) != expected:", "if False:",
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
)  # fmt: skip
