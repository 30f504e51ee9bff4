"""Which VLANs a nic is in, as Ganeti writes it.

``.10`` is one VLAN, of which the guest sees nothing; ``:10:20`` are several, whose tags it sets
itself; ``.10:20`` is both. A number alone is one VLAN.
"""

import re
from typing import NamedTuple

_FORM = re.compile(r"(\.?(?P<untagged>[0-9]{1,4}))?(?P<tagged>(:[0-9]{1,4})*)")
_NUMBERS = range(1, 4095)


class Vlans(NamedTuple):
    """``untagged`` is what the guest sends without a tag; None: it has to give one."""

    untagged: int | None = None
    tagged: tuple[int, ...] = ()


def parse_vlans(text: str) -> Vlans:
    """Read the VLANs of a nic; none for the empty text.

    Raises:
        ValueError: it is something else.
    """
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"vlan cannot be “{text}”: give one as .10, several as :10:20")
    untagged = int(form["untagged"]) if form["untagged"] else None
    tagged = tuple(map(int, form["tagged"].split(":")[1:]))
    each = [*tagged, *([] if untagged is None else [untagged])]
    if not all(number in _NUMBERS for number in each) or len(set(each)) < len(each):
        raise ValueError(f"vlan cannot be “{text}”: its numbers are from 1 to 4094, each once")
    return Vlans(untagged, tuple(sorted(tagged)))
