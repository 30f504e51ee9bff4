"""The command line that runs a script in names of its own."""

from collections.abc import Sequence

# Killed when whoever started it is; the first process of its own names is a shell, since what a
# process with that number does not expect does not end it.
_OWN_NAMES = (
    "setpriv", "--pdeathsig", "KILL",
    "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip
_FIRST = ("/bin/sh", "-c", '"$@"; exit $?', "script")


def command_line(script: Sequence[str]) -> tuple[str, ...]:
    """Return what runs ``script``."""
    return (*_OWN_NAMES, "--", *_FIRST, *script)
