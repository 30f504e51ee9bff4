"""Types for what must not be mixed, and the rules a name obeys.

Objects are told apart by UUID (``…Id``); people and wire protocols use names. Numbers carry
their bounds in their types, so whoever reads a message from the network need not check them.
"""

import re
from typing import Annotated, NewType

from msgspec import Meta

from common.errors import InvalidRequest

# Texts of different lengths, for what others may tell us.
Word = Annotated[str, Meta(max_length=256)]
Sentence = Annotated[str, Meta(max_length=8192)]  # some of them quote the end of a log
Path = Annotated[str, Meta(max_length=4096)]
# What a variable of a script's environment may say.
Line = Annotated[
    str,
    Meta(
        max_length=4096,
        pattern=r"^[^\x00-\x1f\x7f]*\Z",
        description="text without line breaks and other control characters",
    ),
]

ClusterName = NewType("ClusterName", Word)
GroupName = NewType("GroupName", Word)
NodeName = NewType("NodeName", Word)
InstanceName = NewType("InstanceName", Word)
NetworkName = NewType("NetworkName", Word)

ClusterId = NewType("ClusterId", Word)
GroupId = NewType("GroupId", Word)
NodeId = NewType("NodeId", Word)
InstanceId = NewType("InstanceId", Word)
DiskId = NewType("DiskId", Word)
NicId = NewType("NicId", Word)
NetworkId = NewType("NetworkId", Word)
FilterId = NewType("FilterId", Word)

# Far more than can ever be counted, and far below 2**63, where SQLite ends; a number that is exact
# in every JSON reader.
LARGEST_COUNT = 2**53
Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]

JobId = NewType("JobId", Count)
TaskId = NewType("TaskId", Word)
CallId = NewType("CallId", Word)

Epoch = NewType("Epoch", Count)  # counts masterships; 0 is "none yet"
Serial = NewType("Serial", Count)  # counts commits; 0 is the empty state

# What one machine may have: sums over any cluster stay far from where integers end.
MiB = NewType("MiB", Annotated[int, Meta(ge=0, le=2**40)])  # an exbibyte
Few = Annotated[int, Meta(ge=0, le=2**20)]  # processors, sockets
MOST_DEBUG = 10
DebugLevel = Annotated[int, Meta(ge=0, le=MOST_DEBUG)]  # how often somebody would say “--debug”
Port = Annotated[int, Meta(ge=0, le=2**16 - 1)]
Seconds = Annotated[float, Meta(ge=0, le=2**40)]  # of processors, or since 1970
Load = Annotated[float, Meta(ge=0, le=2**20)]

# Of a node's public key: hex SHA-256; or empty, where it is not known.
KeyId = NewType("KeyId", Annotated[str, Meta(pattern=r"^([0-9a-f]{64})?$")])

_LABEL = re.compile(r"[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?")
_LINE = re.compile(r"[^\x00-\x1f\x7f]{0,4096}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def check_name(name: str, kind: str) -> None:
    """Refuse a name that is no host name (RFC 1123, lower case, at most 253 characters).

    The same rule for clusters, groups, nodes and instances: names end up in file names,
    certificates and command lines.

    Raises:
        InvalidRequest: the name, and what is wrong with it.
    """
    if not name or len(name) > 253:
        raise InvalidRequest(
            f"The name of {'an' if kind[0] in 'aeiou' else 'a'} {kind} has 1 to 253 characters; "
            f"this one has {len(name)}."
        )
    for label in name.split("."):
        if not _LABEL.fullmatch(label):
            raise InvalidRequest(
                f"“{name}” is no {kind} name: use lower-case letters, digits, “-” and dots, "
                "as in web1.example.com, at most 63 characters from dot to dot.",
                name=name,
            )


def is_line(text: str) -> bool:
    """Tell whether ``text`` can be a ``Line``."""
    return _LINE.fullmatch(text) is not None


def is_uuid(text: str) -> bool:
    """Tell whether ``text`` is a UUID in its usual lower-case form."""
    return _UUID.fullmatch(text) is not None
