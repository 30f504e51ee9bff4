"""What parameters mean, for the manual: as they are declared."""

import re
from inspect import cleandoc

from common.messages import Order

_ENTRY = re.compile(r"^ {4}(\w+): (.+(?:\n {8}.+)*)", re.MULTILINE)


def meanings(kind: type[Order]) -> dict[str, str]:
    """Return what the docstring of a declaration says of each of its parameters.

    Args:
        kind: with a section ``Attributes``, or a kind of such a one.
    """
    declared = next(each for each in kind.__mro__ if "Attributes:" in (each.__doc__ or ""))
    section = cleandoc(declared.__doc__ or "").partition("Attributes:\n")[2]
    return {name: " ".join(text.split()) for name, text in _ENTRY.findall(section)}
