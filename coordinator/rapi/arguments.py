"""The arguments that queries may have: what they are, and what for."""

from collections.abc import Mapping
from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_FLAG: dict[str, Any] = {"type": "integer", "enum": [0, 1]}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}

# fmt: off
ARGUMENTS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "allocatable": (_FLAG, "whether new volumes may take space of it"),
    "auto-promote": (_FLAG, "make another node a master candidate, if one is needed"),
    "bulk": (_FLAG, "tell all of each object instead of its name"),
    "disks": (_TEXT, "numbers of disks, with commas"),
    "dry-run": (_FLAG, "only look what would be done"),
    "fields": (_TEXT, "names of fields, with commas"),
    "force": (_FLAG, "do it where it is refused otherwise"),
    "iallocator": (_TEXT, "name of the allocator that chooses nodes"),
    "ignore_secondaries": (_FLAG, "do it although the disks of secondary nodes cannot be reached"),
    "ignore_size": (_FLAG, "attach disks whose size is another than recorded"),
    "kinds": (_TEXT, "kinds of objects, with commas; all if left out"),
    "live": (_FLAG, "1: move what runs while it runs"),
    "mode": (_TEXT, "how it is done"),
    "name": (_TEXT, "of the storage unit"),
    "no_remember": (_FLAG, "do not record how it should be now"),
    "nostartup": (_FLAG, "leave it stopped afterwards"),
    "os": (_TEXT, "the operating system"),
    "output_fields": (_TEXT, "names of fields, with commas"),
    "reason": (_TEXT, "why; it is kept with the job"),
    "remote_node": (_TEXT, "the new secondary node"),
    "static": (_FLAG, "tell only what is configured"),
    "storage_type": (_TEXT, "kind of storage unit, as lvm-vg"),
    "tag": (_TEXTS, "a tag; may be given several times"),
    "type": ({"type": "string", "enum": ["soft", "hard", "full"]}, "how it is rebooted"),
}
# fmt: on
