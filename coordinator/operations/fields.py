"""Fields that several operations have, spelled the same everywhere.

instance_name: InstanceArgument
iallocator: AllocatorOption = None
"""

from typing import Annotated

from msgspec import Meta

from common.names import InstanceName, NodeName
from coordinator.operations.parameter import Syntax, argument, hidden, option

InstanceArgument = Annotated[InstanceName, argument("name of the instance")]
NodeArgument = Annotated[NodeName, argument("name of the node")]

AllocatorOption = Annotated[
    str | None, option("-I", "--iallocator", help="have this allocator choose the nodes")
]
TargetNodeOption = Annotated[str | None, option("-n", "--target-node", help="node to move it to")]

Patience = Annotated[int, Meta(ge=0, le=7 * 86_400)]  # seconds; more than a week is a slip
ShutdownTimeout = Annotated[
    Patience, option("--shutdown-timeout", help="seconds to wait before it is killed (120)")
]
NoRemember = Annotated[
    bool,
    option("--no-remember", help="do not record how it should be now", syntax=Syntax.FLAG),
]

SecondaryAddress = Annotated[
    str | None,
    option("-s", "--secondary-ip", help="for replication and migration", syntax=Syntax.ADDRESS),
]
MasterCapable = Annotated[
    bool | None, option("--master-capable", help="may become master", syntax=Syntax.YES_NO)
]
VmCapable = Annotated[
    bool | None, option("--vm-capable", help="may run instances", syntax=Syntax.YES_NO)
]

# A verification hands these on to those of its parts.
NamedCodes = Annotated[bool, hidden("name the code of each finding")]
IgnoredCodes = Annotated[tuple[str, ...], hidden("codes that count as warnings")]
ToldChecks = Annotated[bool, hidden("tell what is looked at")]
SkippedChecks = Annotated[tuple[str, ...], hidden("names of checks to leave out")]
ResultIsFindings = Annotated[
    bool, hidden("result: what was found, instead of whether there is no error")
]
