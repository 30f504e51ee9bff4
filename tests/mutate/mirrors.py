"""Faults in what a node does with mirrored disks."""

from tests.mutate.fault import Fault

CONTRACT = "tests/contract/test_mirrors.py"
APART, ANEW = "tests/contract/test_mirrors_apart.py", "tests/contract/test_mirrors_anew.py"
LEFT_OVER = "tests/contract/test_mirrors_left_over.py"
DRIVER = "tests/unit/noded/storage/test_drbd_driver.py"
LINUX = "tests/unit/noded/storage/test_drbd_linux.py"
EIGHT = "tests/unit/noded/storage/test_drbd_eight.py"
CONNECTING = "tests/unit/noded/storage/test_drbd_connecting.py"
NINE = "tests/unit/noded/storage/test_drbd_nine.py"
CONVERSION = "tests/unit/noded/storage/test_drbd_conversion.py"
ENDS = "tests/unit/disks/test_drbd.py"
MIRROR = "tests/unit/noded/storage/test_drbd_mirror.py"
SIM = "tests/sim/test_mirrored_failovers.py"
DISKS = "tests/sim/test_mirrored_disks.py"
LEFTOVERS = "tests/sim/test_leftovers.py"
ANYWHERE = "tests/sim/test_mirrored_anywhere.py"
BASES = "tests/sim/test_lost_bases.py"
LOST = "tests/sim/test_lost_second_nodes.py"
OPERATIONS = "tests/sim/test_operations.py"
COMMANDS = "tests/unit/noded/storage/test_drbd_commands.py"

MIRRORS = (
    Fault(
        "buffers hold one turn", "copies are made at the rate that is set",
        "noded/storage/drbd/eight/speed.py",
        "_UNDER_WAY = 2", "_UNDER_WAY = 1",
        (f"{COMMANDS} half_of_the_buffers",),
    ),
    Fault(
        "unclean metadata tried first", "no program is run to be refused",
        "noded/storage/drbd/linux.py",
        "if await self._changes.run(language.is_unclean, meta):", "if False:",
        (f"{LINUX} would_refuse",),
    ),
    Fault(
        "gone on alone and not noted", "who lacks what is written is noted before",
        "coordinator/jobs/recipe.py",
        'write("undone", step.title, step.undo_edit)', 'write("undone", step.title)',
        (f"{LOST} is_noted",),
    ),
    Fault(
        "both copies noted as behind", "one copy counts",
        "coordinator/operations/steps/one_copy.py",
        "            if self._home.uuid not in config.disks[disk.id].behind\n", "",
        (f"{LOST} behind_itself",),
    ),
    Fault(
        "parted before it is noted", "who lacks what was written is recorded before the parting",
        "coordinator/operations/steps/mirrors.py",
        'have all", do=look, edit=note)', 'have all", do=look)',
        (f"{LOST} behind_itself or just_before",),
    ),
    Fault(
        "failed over to what has missed writes", "a copy that is gone on from has all at the end",
        "coordinator/operations/instance/anywhere.py",
        "        if is_behind or report is None or report.own is not CopyState.UP_TO_DATE:",
        "        if False:",
        (f"{ANYWHERE} missed_writes",),
    ),
    Fault(
        "cut off, and taken for good", "who wrote says which copy is behind",
        "coordinator/operations/instance/anywhere.py",
        "        if is_behind or report is None", "        if report is None",
        (f"{ANYWHERE} missed_writes",),
    ),
    Fault(
        "stopped for good at a lost base", "nothing is given up before the good copy can be read",
        "coordinator/operations/instance/anywhere.py",
        "        await (wait_for_sync if waits else connected)(cluster, guest, base)",
        "        await wait_for_sync(cluster, guest, base) if waits else None",
        (BASES,),
        also=(("hold(cluster, guest, standby(base, target))", "hold(cluster, guest, ())"),),
    ),
    Fault(
        "down though its copy is whole", "what has a copy of its own starts without the base",
        "coordinator/operations/instance/anywhere.py",
        "    yield from start_again(cluster, pairing.guest, target, pairing.attach, now)",
        "    yield start_guest(cluster, pairing.guest, target, pairing.attach, was_running=True)",
        (BASES,),
    ),
    Fault(
        "nobody told how it starts", "who is left with a stopped guest is told what starts it",
        "coordinator/operations/step.py",
        'f"{error.message} {words}"', "error.message",
        (BASES,),
    ),
    Fault(
        "given up before it is asked for", "a rollback needs both nodes, and asks them first",
        "coordinator/operations/instance/rollback.py",
        "            yield let_go(cluster, plan.guest, (plan.node, *plan.copies))\n",
        "            pass\n",
        ("tests/sim/test_mirrored_snapshots.py both_nodes",),
    ),
    Fault(
        "cancelled twice, not waited for", "nothing is let go of that a thread works with",
        "noded/system/threads.py",
        "        while not doing.done():\n            with suppress(asyncio.CancelledError):\n"
        "                await asyncio.wait([doing])\n",
        "        await asyncio.wait([doing])\n",
        ("tests/unit/noded/system/test_cancelled_threads.py",),
    ),
    Fault(
        "all threads held by metadata", "a disk that hangs holds up nothing else",
        "noded/storage/drbd/linux.py",
        "await self._changes.run(language.is_unclean, meta)",
        "await __import__(\"asyncio\").to_thread(language.is_unclean, meta)",
        ("tests/unit/noded/storage/test_drbd_held_up.py",),
    ),
    Fault(
        "all threads held by DRBD", "a module that is held up holds up nothing else",
        "noded/storage/drbd/linux.py",
        "            await self._changes.run(change)",
        "            await __import__(\"asyncio\").to_thread(change)",
        ("tests/unit/noded/storage/test_drbd_held_up.py",),
    ),
    Fault(
        "failed start not looked into", "what a start that fails has written alone is noted",
        "coordinator/operations/steps/guests.py",
        "undo_edit=wrote.edit if mirrored(guest) else None", "undo_edit=None",
        (f"{SIM} start_that_fails",),
    ),
    Fault(
        "diskless device taken for a copy", "a device without volumes is no copy",
        "coordinator/operations/instance/second_copy.py",
        "report is not None and report.own is not CopyState.NONE", "report is not None",
        (f"{SIM} device_is_there",),
    ),
    Fault(
        "silence taken for success", "what DRBD does not say has not happened",
        "noded/storage/drbd/line.py",
        "        if not answers:", "        if False:",
        (EIGHT,),
    ),
    Fault(
        "stopped because its copy cannot follow", "a guest that was stopped for a while goes on",
        "coordinator/operations/steps/one_copy.py",
        "        if not await _can_do_without(cluster, guest, home):\n", "        if True:\n",
        (LOST,),
    ),
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
        "data set aside first", "what was half set aside is so as a whole when it is asked again",
        "noded/storage/drbd/upkeep.py",
        "rename([*pairs][::-1])", "rename([*pairs])",
        (ANEW,),
    ),
    Fault(
        "new data kept with old metadata", "what was set aside comes back as a whole",
        "noded/storage/drbd/upkeep.py",
        "([volume for volume, _, there in pairs if there])", "([])",
        (ANEW,),
    ),
    Fault(
        "old volumes left aside", "a replacement that fails has the old volumes back",
        "coordinator/operations/instance/replacing.py",
        "        await mirrors.take_back(disks=guest.disks)\n", "",
        (f"{OPERATIONS} replace and primary",),
    ),
    Fault(
        "taken back and not attached", "a replacement that fails leaves the copies attached",
        "coordinator/operations/instance/replacing.py",
        "        await hold(cluster, guest, as_it_was(plan, target))\n\n    return act",
        "\n    return act",
        (f"{OPERATIONS} replace and primary",),
    ),
    Fault(
        "taken back though nothing was set aside", "what was not set aside stays attached",
        "noded/storage/drbd/upkeep.py",
        "        if not any(aside):\n            return\n", "",
        (ANEW,),
    ),
    Fault(
        "taken back below a device", "new volumes are let go of before they are deleted",
        "noded/storage/drbd/upkeep.py",
        "            await self._module.detach(mirror.minor)\n        pairs",
        "            pass\n        pairs",
        (f"{OPERATIONS} replace and primary",),
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
        "told while it proves", "no option changes while a peer may be proving who it is",
        "noded/storage/drbd/devices.py",
        "(changes and may_be_checking)", "False",
        (DRIVER,),
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
        (CONNECTING,),
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
        (CONNECTING,),
    ),
    Fault(
        "added between 8.4 and 9", "no new disk is mirrored between the two",
        "coordinator/operations/placement/growth.py",
        "    if for_new and planned.instance.disk_template.traits.is_mirrored:", "    if False:",
        (DISKS,),
    ),
)  # fmt: skip
