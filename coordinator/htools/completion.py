"""What Ganeti's tools tell the scripts that make completions for shells of their options."""

from collections.abc import Sequence

from coordinator.htools.options import Option

_ARGUMENTS = {"hail": "file 1 1", "hscan": "host 0 none"}
"""What follows the options: its kind, how many at least, how many at most."""


def completion_text(program: str, options: Sequence[Option]) -> str:
    """A line an option, its names and what its argument is; then one for what follows them."""
    lines = []
    for option in options:
        names = f"-{option.letter},--{option.name}" if option.letter else f"--{option.name}"
        lines.append(f"{names} {option.completes}")
    if program in _ARGUMENTS:
        lines.append(_ARGUMENTS[program])
    return "\n".join(lines)
