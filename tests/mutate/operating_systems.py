"""Faults in how operating systems and images are installed."""

from tests.mutate.fault import Fault

SCRIPTS = "tests/contract/test_os_scripts.py"
PROCESSES = "tests/contract/test_os_script_processes.py"
INSTALLING, PARAMETERS = "tests/sim/test_installing.py", "tests/sim/test_os_parameters.py"
SCRIPTED = "tests/sim/test_scripted_exports.py"
IMAGES = "tests/contract/test_images.py"  # what a process does is not in a copy of the tree

OF_OPERATING_SYSTEMS = (
    Fault(
        "all untrusted at once", "of scripts that are not trusted one runs at a time",
        "noded/operating_systems/worker.py",
        "    if task.sandbox:  # after", "    if False:  # after",
        ("tests/contract/test_untrusted_scripts.py waits",),
    ),
    Fault(
        "script on a disk in use", "no script works on a disk that a guest or another script has",
        "noded/operating_systems/driver.py",
        "claim(descriptor, disk.backing.where, to_write=True)", "pass",
        (SCRIPTS,),
    ),
    Fault(
        "script run twice", "a script that was begun for a run is not begun again",
        "noded/operating_systems/driver.py",
        "if home.exists and (self._runs(home) or home.result()):", "if False:",
        (SCRIPTS,),
    ),
    Fault(
        "refusal that tells a secret", "what is confidential is in no refusal of parameters",
        "noded/operating_systems/driver.py",
        "    mask = Mask(secrets)\n", "    mask = Mask(())\n",
        (PROCESSES,),
    ),
    Fault(
        "imported with its old name", "what is imported under another name is told it",
        "coordinator/operations/backup/renaming.py",
        "    if subject.name == old_name:", "    if True:",
        (SCRIPTED,),
    ),
    Fault(
        "definition that others can write", "what runs as root is root's alone",
        "noded/operating_systems/definition.py",
        "    check_roots_own(directory)\n", "",
        (PROCESSES,),
    ),
    Fault(
        "variant with a path", "a variant is a name and no path",
        "common/model/os_name.py",
        '_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"', '_PART = r"[A-Za-z0-9_./-]{1,64}"',
        (SCRIPTS,),
    ),
    Fault(
        "installation that is left attached", "disks are let go of when their script has ended",
        "coordinator/operations/steps/scripts.py",
        "    await hold_disks(cluster, run.order.subject.disks, holds)\n", "",
        (INSTALLING,),
    ),
    Fault(
        "confidential plan", "private parameters are in no job",
        "coordinator/operations/fields.py",
        'help="NAME=VALUE,…; kept, and shown to nobody",\n        syntax=Syntax.KEYVAL,\n'
        "        secret=True,",
        'help="NAME=VALUE,…; kept, and shown to nobody",\n        syntax=Syntax.KEYVAL,',
        (PARAMETERS,),
    ),
    Fault(
        "failed export", "an export is kept when its scripts have ended well",
        "coordinator/operations/steps/script_copies.py",
        "        await follow_script(cluster, run.node, self._run)\n\n", "\n",
        (SCRIPTED,),
    ),
    Fault(
        "stream taken up again", "what broke off is begun anew",
        "coordinator/operations/steps/script_copies.py",
        "        if number:\n            await self.end()\n", "",
        (SCRIPTED,),
    ),
    Fault(
        "copy of before", "what was fetched of one offer says nothing of another",
        "coordinator/operations/steps/copies.py",
        "{copy.index}-{attempt}-{which}", "{copy.index}-{attempt}",
        (SCRIPTED,),
    ),
    Fault(
        "image that names a file", "an image opens no other file",
        "noded/images/qcow2.py",
        "        if backing:\n", "        if False:\n",
        (IMAGES,),
    ),
    Fault(
        "old data behind an image", "nothing of what was on a disk before stays",
        "noded/images/writing.py",
        "    if not is_zeros and done < size:\n", "    if False:\n",
        (IMAGES,),
    ),
)  # fmt: skip
