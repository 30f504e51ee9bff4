"""Faults in what a node does with mirrored disks."""

from tests.mutate.fault import Fault

CONTRACT = "tests/contract/test_mirrors.py"
APART, ANEW = "tests/contract/test_mirrors_apart.py", "tests/contract/test_mirrors_anew.py"
LEFT_OVER = "tests/contract/test_mirrors_left_over.py"
LINUX = "tests/unit/noded/storage/test_drbd_linux.py"
NINE = "tests/unit/noded/storage/test_drbd_nine.py"
CONVERSION = "tests/unit/noded/storage/test_drbd_conversion.py"
ENDS = "tests/unit/disks/test_drbd.py"
MIRROR = "tests/unit/noded/storage/test_drbd_mirror.py"

SIM = "tests/sim/test_mirrored_failovers.py"
DISKS = "tests/sim/test_mirrored_disks.py"
LEFTOVERS = "tests/sim/test_leftovers.py"

MIRRORS = (
    Fault(
        "stopped for a copy that misses writes", "who runs it is asked, and knows first",
        "coordinator/operations/instance/second_copy.py",
        "            if source and not problem and not is_whole(written[index]):",
        "            if False:",
        (f"{SIM} missed_yet or misses_writes",),
    ),
    Fault(
        "dead node waited for", "a good copy is used at once",
        "noded/storage/drbd/devices.py",
        "            if forced or report.link is Link.CONNECTED:", "            if True:",
        (f"{SIM} missed_yet",),
    ),
    Fault(
        "left over though it is kept here", "what a disk of this node has stays",
        "coordinator/disks/leftovers.py",
        "    return disk is None or node.uuid not in disk.nodes", "    return True",
        (LEFTOVERS,),
    ),
    Fault(
        "used though nobody was asked", "a copy is used if it is known to be the newest",
        "noded/storage/drbd/decide.py",
        "    if not alone:\n", "    if False:\n",
        (APART,),
    ),
    Fault(
        "used though it is behind", "an outdated copy is used only if it was declared good",
        "noded/storage/drbd/decide.py",
        "    if report.own not in GOOD_ALONE:", "    if False:",
        (APART,),
    ),
    Fault(
        "used though neither is good", "a copy is used if one of both is up-to-date",
        "noded/storage/drbd/decide.py",
        "        if CopyState.UP_TO_DATE in (report.own, report.peer):\n            return False\n",
        "        return True\n",
        (CONTRACT,),
    ),
    Fault(
        "foreign device taken away", "what is not ours is left alone",
        "noded/storage/drbd/decide.py",
        "    if not device.resource.startswith(OURS):", "    if False:",
        (LEFT_OVER,),
    ),
    Fault(
        "working device taken away", "a disk that is connected does not make way",
        "noded/storage/drbd/decide.py",
        "    if device.report.primary or device.report.link is Link.CONNECTED:\n"
        "        raise Conflict(",
        "    if False:\n        raise Conflict(",
        (LEFT_OVER,),
    ),
    Fault(
        "old metadata kept", "metadata tells of the data beside it",
        "noded/storage/drbd/mirror.py",
        "tells_of=self.data,", "tells_of=None,",
        (ANEW,),
    ),
    Fault(
        "good copy set aside", "a copy is given up only if there is another good one",
        "noded/storage/drbd/upkeep.py",
        "        if report.link is not Link.CONNECTED or report.peer is not CopyState.UP_TO_DATE:",
        "        if False:",
        (ANEW,),
    ),
    Fault(
        "new data kept with old metadata", "what was set aside comes back as a whole",
        "noded/storage/drbd/upkeep.py",
        "([volume for volume, _, there in pairs if there])", "([])",
        (ANEW,),
    ),
    Fault(
        "copy in use given up", "what a guest writes is not given up while it writes",
        "noded/storage/drbd/upkeep.py",
        "        if discard and device.report.primary:", "        if False:",
        (APART,),
    ),
    Fault(
        "both may write for good", "two nodes may write only while a guest moves",
        "noded/storage/drbd/driver.py",
        "allow_two=access is Access.SHARED", "allow_two=True",
        (CONTRACT,),
    ),
    Fault(
        "both may write, told later", "two that look for each other for a guest that moves do meet",
        "noded/storage/drbd/devices.py",
        "discard=discard, allow_two=allow_two", "discard=discard, allow_two=False",
        (CONTRACT,),
    ),
    Fault(
        "secret shown", "the secret of a disk is not shown",
        "noded/storage/drbd/mirror.py",
        "    secret: str = field(repr=False)\n", "    secret: str = field(repr=True)\n",
        (MIRROR,),
    ),
    Fault(
        "no proof asked for", "an end proves that it knows the secret, where the kernel can check",
        "noded/storage/drbd/eight/language.py",
        "{**proof, **options, **told})", "{**options, **told})",
        (LINUX,),
    ),
    Fault(
        "metadata made anew", "metadata is made only where there is none",
        "noded/storage/drbd/linux.py",
        '            if error.detail.get("status") != NO_METADATA:', "            if False:",
        (LINUX,),
    ),
    Fault(
        "metadata of 8.4 written over", "what tells copies apart is converted or left alone",
        "noded/storage/drbd/linux.py",
        "        if told is None:\n            return False\n", "        return False\n",
        (CONVERSION,),
    ),
    Fault(
        "what one copy lacks forgotten", "metadata with a bitmap are not converted",
        "noded/storage/drbd/conversion.py",
        "    if words[1] != _NONE:", "    if False:",
        (CONVERSION,),
    ),
    Fault(
        "another number", "a node that keeps its copy keeps its number",
        "coordinator/disks/drbd.py",
        "    if first not in nodes:", "    if True:",
        (ENDS,),
    ),
    Fault(
        "promoted by who opens it", "a device of DRBD 9 is primary when it is told to",
        "noded/storage/drbd/nine/netlink.py",
        "3: as_flag(value=False)", "3: as_flag(value=True)",
        (NINE,),
    ),
    Fault(
        "no proof asked for by 9", "who does not know the secret gets nothing",
        "noded/storage/drbd/nine/language.py",
        "{**proof, **options}", "options",
        (NINE,),
    ),
    Fault(
        "old peer kept", "a connection is made anew, with nothing of the former one",
        "noded/storage/drbd/nine/netlink.py",
        "            if read_text(there, 2) == resource:", "            if False:",
        (NINE,),
    ),
    Fault(
        "met and not believed", "a guest can be started where its other copy is, once a node died",
        "noded/storage/drbd/nine/parse.py",
        "has_met = bool(read_number(counted, 9) & _HAS_MET)", "has_met = False",
        (NINE,),
    ),
    Fault(
        "believed and never met", "a copy that was converted is not taken for the newest",
        "noded/storage/drbd/nine/parse.py",
        "has_met = bool(read_number(counted, 9) & _HAS_MET)", "has_met = True",
        (NINE,),
    ),
    Fault(
        "too much for the module", "what drbdsetup refuses is left to it",
        "noded/storage/drbd/eight/custom.py",
        "if least <= meant <= most else None", "",
        (LINUX,),
    ),
    Fault(
        "added between 8.4 and 9", "no new disk is mirrored between the two",
        "coordinator/operations/placement/growth.py",
        "    if for_new and planned.instance.disk_template.traits.is_mirrored:", "    if False:",
        (DISKS,),
    ),
)  # fmt: skip
