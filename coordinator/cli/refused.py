"""Options and commands of Ganeti's that are refused by name, each with what to do instead.

Whoever types what he always typed hears that it was not obeyed, and why. Values that ask for
nothing are taken.
"""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from common.errors import InvalidRequest


class Refused(NamedTuple):
    """``why`` says what to do instead; ``harmless`` are values that ask for nothing."""

    why: str
    harmless: tuple[str, ...] = ()
    short: str = ""  # another spelling of the option


ANY = "*"  # as a value: whatever is given, it asks for nothing here
_NO = ("no", "n", "false", "False", "0", "")

_STATES = Refused("Nodes tell themselves what they have; nothing is kept of it.")
_SPECS = Refused("Sizes are given with --ipolicy-bounds-specs and --ipolicy-std-specs.")
_SSH = Refused("The cluster has no ssh keys.", (ANY,))
_NO_SSH = Refused("The cluster has no ssh keys; nodes know each other by their certificates.")
_SPICE = Refused(
    "Certificates of SPICE displays are files of nodes: root names their directory there in "
    "/etc/gantry/guests (“spice /DIRECTORY”)."
)
_OF_CLUSTER = {
    "--compression-tools": Refused("Copies know “none”, “gzip” and their like by themselves."),
    "--disk-state": _STATES,
    "--drbd-usermode-helper": Refused(
        "It is an option of the kernel's module, as the operators' guide tells.", ("/bin/true",)
    ),
    "--hypervisor-state": _STATES,
    "--install-image": Refused("Give “-o image” to “gnt-instance add”.", ("",)),
    "--prealloc-wipe-disks": Refused("New disks are zeros in any case.", (ANY,)),
    "--use-external-mip-script": Refused("The kernel itself has the master's address.", _NO),
    "--zeroing-image": Refused("What is free of a disk is not zeroed before an export.", ("",)),
    "--defaults": Refused(
        "The bridge is given with -N link=BRIDGE, and the hypervisor with --enabled-hypervisors, "
        "as the first; disks have no size by default. Parameters are those of -H and -B."
    ),
}

_FREE = Refused(
    "What is free of a disk is not zeroed before an export; have the guest discard it (“fstrim”)."
)
_HELPER = Refused("No helper is started to install an operating system.", (ANY,))

_COMMUNICATION = Refused(
    "Guests are told about themselves by an image's NoCloud data.", _NO, short="-c"
)
_NO_JOB = Refused("No job is made, so there is none to go earlier.", (ANY,))
_DRIVER = Refused("How guests get a file is a parameter, “-H disk_aio=…”.", ("loop",))

OPTIONS: Mapping[str, Mapping[str, Refused]] = {
    "gnt-backup export": {
        "--zero-free-space": _FREE,
        "--zeroing-timeout-fixed": _FREE,
        "--zeroing-timeout-per-mib": _FREE,
    },
    "gnt-backup import": {
        "--file-driver": _DRIVER,
        "--helper-shutdown-timeout": _HELPER,
        "--helper-startup-timeout": _HELPER,
    },
    "gnt-instance add": {
        "--file-driver": _DRIVER,
        "--communication": _COMMUNICATION,
        "--helper-shutdown-timeout": _HELPER,
        "--helper-startup-timeout": _HELPER,
    },
    "gnt-instance console": {"--priority": _NO_JOB},
    "gnt-instance info": {"--priority": _NO_JOB},
    "gnt-instance modify": {
        "--file-driver": _DRIVER,
        "--communication": _COMMUNICATION,
        "--iallocator": Refused("Name the second node of new copies, with -n.", short="-I"),
        "--new-primary": Refused("“gnt-instance failover”, “migrate” and “move” move it."),
    },
    "gnt-job cancel": {
        "--kill": Refused("No job is a process; to cancel one has it undone where it stands."),
    },
    "gnt-cluster init": {
        **_OF_CLUSTER,
        "--primary-ip-version": Refused("It is 4 or 6, and each node may have either.", ("4", "6")),
        "--specs-cpu-count": _SPECS,
        "--specs-disk-count": _SPECS,
        "--specs-disk-size": _SPECS,
        "--specs-mem-size": _SPECS,
        "--specs-nic-count": _SPECS,
        "--ssh-key-bits": _SSH,
        "--ssh-key-type": _SSH,
    },
    "gnt-cluster modify": {
        **_OF_CLUSTER,
        "--data-collector-interval": Refused("gantry-monitor looks when it is asked."),
        "--enabled-data-collectors": Refused(
            "gantry-monitor has all collectors; who asks chooses among them."
        ),
        "--instance-communication-network": Refused(
            "Guests are told about themselves by an image's NoCloud data.", ("",)
        ),
        "--max-tracked-jobs": Refused("Any number of jobs is followed.", (ANY,)),
        "--modify-etc-hosts": Refused("/etc/hosts is yours; “copyfile” copies it.", _NO),
        "--reserved-lvs": Refused("Volumes that Gantry has not made are left alone.", (ANY,)),
    },
    "gnt-cluster master-failover": {
        "--ignore-offline-nodes": Refused(
            "Nodes that are marked offline have a say in who is master; where they are too many, "
            "give your word with --no-voting."
        ),
    },
    **{
        command: {"--disk-state": _STATES, "--hypervisor-state": _STATES}
        for command in ("gnt-node add", "gnt-node modify", "gnt-group add", "gnt-group modify")
    },
    "gnt-cluster renew-crypto": {
        "--new-spice-certificate": _SPICE,
        "--new-ssh-keys": _NO_SSH,
        "--spice-ca-certificate": _SPICE,
        "--spice-certificate": _SPICE,
        "--ssh-key-bits": _NO_SSH,
        "--ssh-key-type": _NO_SSH,
    },
}
"""By command, then by option."""

_ONE_PROCESS = (
    "The coordinator keeps the configuration and the locks itself: “gnt-debug locks” lists them, "
    "what a job has locked ends with it, and each change is on disk before it is told."
)

COMMANDS: Mapping[str, str] = {
    "gnt-cluster upgrade": (
        "Nodes are upgraded one after the other, the master last, by the means of your "
        "distribution, or with “deploy/install”; docs/howto/install.md tells how."
    ),
    "gnt-debug metad": (
        "No daemon tells guests about themselves: what is installed from an image reads its "
        "NoCloud data, and scripts of operating systems are told by their environment."
    ),
    "gnt-debug wconfd": _ONE_PROCESS,
}
"""Commands that are not there, and what is done instead."""


class RefusedOption(argparse.Action):
    """Takes a value that asks for nothing, and refuses any other."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, *, refused: Refused, default: Any
    ) -> None:
        super().__init__(option_strings, dest, nargs="?", default=default, help=argparse.SUPPRESS)
        self._refused = refused

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 -- argparse gives it
        namespace: argparse.Namespace,  # noqa: ARG002
        values: Any,
        option_string: str | None = None,
    ) -> None:
        """Look at what was given.

        Raises:
            InvalidRequest: it asks for something.
        """
        harmless = self._refused.harmless
        if ANY not in harmless and values not in harmless:
            raise InvalidRequest(f"{option_string} is Ganeti's and not obeyed. {self._refused.why}")


def add_refused(parser: argparse.ArgumentParser, command: str) -> None:
    """Know the options of a command that are not obeyed."""
    for flag, refused in OPTIONS.get(command, {}).items():
        flags = [flag, refused.short] if refused.short else [flag]
        parser.add_argument(
            *flags, action=RefusedOption, refused=refused, default=argparse.SUPPRESS
        )
