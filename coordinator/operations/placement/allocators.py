"""Which allocators are asked, in which order, and where their programs are."""

import os
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from common.errors import InvalidRequest, NodeFailure, NotFound
from common.model.cluster import Cluster
from common.paths import GANETIS_ALLOCATORS, Paths

if TYPE_CHECKING:
    from coordinator.operations.placement.shared import SearchPath

BUILT_IN = "hail"  # in this process, unless a program of this name is found before it
DEFAULT = "."  # Ganeti's word for whatever is the cluster's default

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,254}")


class AllocatorFailed(NodeFailure):
    """An allocator program ended badly, or what it printed is no answer."""

    code = "node-failure.allocator"


class RequestType(StrEnum):
    """What an allocator can be asked, in the protocol's words."""

    ALLOCATE = "allocate"
    RELOCATE = "relocate"
    EVACUATE = "node-evacuate"
    CHANGE_GROUP = "change-group"
    MULTI_ALLOCATE = "multi-allocate"


def check_name(name: str) -> None:
    """Refuse what cannot be the name of an allocator, paths among them.

    Raises:
        InvalidRequest: names it.
    """
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"“{name}” is no name of an allocator: give the name of a file in one of the search "
            f"path's directories, or “{BUILT_IN}” for the built-in one."
        )


def allocators_for(
    cluster: Cluster, kind: RequestType, named: str | None, *, instead: str = ""
) -> tuple[str, ...]:
    """Return the allocators to try, in order: the one named, else the cluster's defaults.

    ``instead`` is what else could be given, for the complaint: "a node with -n".

    Raises:
        InvalidRequest: none is named, and there is no default.
    """
    if named and named != DEFAULT:
        check_name(named)
        return (named,)
    general = (cluster.default_iallocator,) if cluster.default_iallocator else ()
    names = cluster.default_iallocators.get(kind, general)
    if not names:
        ways = f"{instead}, or an allocator with -I" if instead else "an allocator with -I"
        raise InvalidRequest(
            f"Name {ways}: the cluster has no default allocator for “{kind}”. “gnt-cluster "
            "modify --default-iallocator” sets one."
        )
    return names


def search_path_of(paths: Paths) -> "SearchPath":
    """Return where this node's allocators are looked for; the built-in one comes after its own."""
    return (*paths.own_allocators(), None, *GANETIS_ALLOCATORS)


def find_program(name: str, search_path: "SearchPath") -> Path | None:
    """Return the first program of this name; None for the built-in allocator.

    Raises:
        NotFound: there is none; says where it was looked for.
        InvalidRequest: it is no name of a program.
    """
    check_name(name)
    for directory in search_path:
        if directory is None:
            if name == BUILT_IN:
                return None
        elif (path := directory / name).is_file() and os.access(path, os.X_OK):
            return path
    looked = ", ".join(str(directory) for directory in search_path if directory)
    where = f" Programs are looked for in {looked}." if looked else ""
    raise NotFound(
        f"There is no allocator “{name}”; the built-in one is “{BUILT_IN}”.{where}", allocator=name
    )
