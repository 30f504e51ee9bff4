"""The kinds of objects that the state is made of: a row of one table each.

Rows of replicas, whole copies, the configuration's maps, names and indexes follow from it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, auto
from operator import attrgetter
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from common.model.cluster import Cluster
from common.model.commit import ARCHIVE
from common.model.disk import Disk
from common.model.filter_rule import FilterRule
from common.model.group import Group
from common.model.instance import Instance
from common.model.job import ArchivedJob, Job
from common.model.network import Network
from common.model.nic import Nic
from common.model.node import Node
from common.model.revoked_key import RevokedKey
from common.model.secret import Secret
from common.model.stored import Foreign, Schema, Stored
from common.names import (
    ClusterId,
    DiskId,
    FilterId,
    GroupId,
    InstanceId,
    JobId,
    KeyId,
    NetworkId,
    NicId,
    NodeId,
)

K = TypeVar("K", bound=str | int)
T = TypeVar("T", bound=Stored)

Upgrade = Callable[[dict[str, Any]], dict[str, Any]]


class Home(Enum):
    """Where the objects of a kind are."""

    CONFIG = auto()  # operations and lists see them
    BESIDES = auto()  # the state has them beside the configuration: secrets
    JOBS = auto()  # a map of their own: most commits change nothing else
    ARCHIVE = auto()  # in the replicas only


@dataclass(frozen=True, eq=False)
class Index(Generic[T]):
    """Finds objects by what ``keys`` says of them, say the nodes they are on."""

    keys: Callable[[T], Iterable[str]]


@dataclass(frozen=True, eq=False)
class Kind(Generic[K, T]):
    """One kind of object.

    Its version is the number of its ``upgrades``, and one: the first of them makes a row of
    version 2 of one of version 1, as JSON values. ``since`` is the lowest version that may be
    master over its rows as they are written now: it keeps what it does not know, and misreads
    nothing. None says this one only, and 0 those as well to whom the kind is unknown.
    """

    name: str  # of its rows; for operators too
    type: type[T]
    key: Callable[[T], K] = attrgetter("uuid")
    home: Home = Home.CONFIG
    named: bool = False  # each has a name of its own
    indexes: tuple[Index[T], ...] = ()
    upgrades: tuple[Upgrade, ...] = ()
    since: int | None = None
    is_findable: bool = field(init=False)  # by more than its key
    decoder: msgspec.json.Decoder[T] = field(init=False)
    schema: Schema | UnsetType = field(init=False)  # of what is written; unset for the first

    def __post_init__(self) -> None:
        since = self.version if self.since is None else self.since
        first = (self.version, since) == (1, 1)
        schema = UNSET if first else Schema(version=self.version, since=since)
        object.__setattr__(self, "is_findable", self.named or bool(self.indexes))
        object.__setattr__(self, "decoder", msgspec.json.Decoder(self.type))
        object.__setattr__(self, "schema", schema)

    @property
    def version(self) -> int:
        return len(self.upgrades) + 1


ON_PRIMARY = Index[Instance](lambda instance: (instance.primary_node,))

RESERVED = Index[Instance](lambda instance: ("",) if instance.forthcoming else ())

CLUSTER = Kind[ClusterId, Cluster]("cluster", Cluster)
GROUP = Kind[GroupId, Group]("group", Group, named=True)
NODE = Kind[NodeId, Node]("node", Node, named=True)
INSTANCE = Kind[InstanceId, Instance](
    "instance", Instance, named=True, indexes=(ON_PRIMARY, RESERVED)
)
DISK = Kind[DiskId, Disk]("disk", Disk)
NIC = Kind[NicId, Nic]("nic", Nic)
# Who does not know them would start guests whose nics are plugged in elsewhere.
# Who knows the first version alone takes all their addresses for such of version 4.
NETWORK = Kind[NetworkId, Network](
    "network", Network, named=True, upgrades=(lambda values: values,)
)
# Who does not know them would begin jobs that they hold.
FILTER = Kind[FilterId, FilterRule]("filter", FilterRule, since=1)
# Who does not know them would have nodes answer to who is out.
REVOKED_KEY = Kind[KeyId, RevokedKey]("revoked-key", RevokedKey, key=attrgetter("id"), since=1)
SECRET = Kind[str, Secret]("secret", Secret, key=attrgetter("id"), home=Home.BESIDES)
JOB = Kind[JobId, Job]("job", Job, key=attrgetter("id"), home=Home.JOBS)
ARCHIVED_JOB = Kind[JobId, ArchivedJob](  # of the version of the job that is in it
    ARCHIVE,
    ArchivedJob,
    key=attrgetter("job.id"),
    home=Home.ARCHIVE,
    upgrades=(lambda values: values,) * len(JOB.upgrades),
    since=JOB.since,
)
FOREIGN = Kind[str, Foreign]("", Foreign, key=lambda row: f"{row.kind} {row.id}", home=Home.BESIDES)


class Kinds:
    """A table of kinds, by the names of their rows and by the classes of their objects."""

    def __init__(self, *kinds: Kind[Any, Any]) -> None:
        self.by_name = {kind.name: kind for kind in kinds}
        self.by_type: dict[type, Kind[Any, Any]] = {each.type: each for each in (*kinds, FOREIGN)}


KINDS = Kinds(
    CLUSTER,
    GROUP,
    NODE,
    INSTANCE,
    DISK,
    NIC,
    NETWORK,
    FILTER,
    REVOKED_KEY,
    SECRET,
    JOB,
    ARCHIVED_JOB,
)


def kind_of(item: Stored) -> Kind[Any, Any]:
    return KINDS.by_type[type(item)]
