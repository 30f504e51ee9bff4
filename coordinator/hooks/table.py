"""Which scripts go with which operation, where they are run, and what they are told: Ganeti's.

Its ``doc/hooks.rst`` lists the same. An operation that is not here has Ganeti's global hooks alone,
on the master.
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import NamedTuple


class Where(Enum):
    """On which nodes scripts are run; always on the master, too, but for ``NOWHERE``."""

    NOWHERE = "nowhere"
    MASTER = "the master"
    CONCERNED = "nodes that have something of the instance, or are to have"
    NODE = "the node that it is about"
    GROUP = "the nodes of the group"
    EVERY = "all nodes"
    OTHERS = "all nodes but the one that it is about"


class About(Enum):
    """What kind of object an operation is about, as scripts are told it."""

    CLUSTER = "CLUSTER"
    GROUP = "GROUP"
    INSTANCE = "INSTANCE"
    NETWORK = "NETWORK"
    NODE = "NODE"
    NOTHING = "NOT_APPLICABLE"


class Hook(NamedTuple):
    """The hooks of one operation.

    Attributes:
        directory: its first part: ``instance-start``, of which ``-pre.d`` and ``-post.d`` are made.
        about: what kind of object its variables describe.
        before: where scripts are run before it.
        after: where they are run after it.
        told: variables besides, and the fields of the operation that they hold.
        moves: whether scripts are told from where to where an instance goes.
    """

    directory: str
    about: About
    before: Where
    after: Where
    told: Mapping[str, str] = {}
    moves: bool = False


def _instance(
    directory: str, told: Mapping[str, str] = MappingProxyType({}), *, moves: bool = False
) -> Hook:
    where = Where.CONCERNED
    return Hook(directory, About.INSTANCE, where, where, told, moves)


_TIMEOUT = {"SHUTDOWN_TIMEOUT": "shutdown_timeout"}
_CONNECTION = {
    "GROUP_NAME": "group_name",
    "GROUP_NETWORK_MODE": "network_mode",
    "GROUP_NETWORK_LINK": "network_link",
    "GROUP_NETWORK_VLAN": "network_vlan",
}
_MASTER, _GROUP = Where.MASTER, Where.GROUP

NO_HOOK = Hook("", About.NOTHING, Where.NOWHERE, Where.NOWHERE)

HOOKS: Mapping[str, Hook] = {
    "OP_BACKUP_EXPORT": _instance(
        "instance-export",
        {
            "EXPORT_MODE": "mode",
            "EXPORT_NODE": "target_node",
            "EXPORT_DO_SHUTDOWN": "shutdown",
            "REMOVE_INSTANCE": "remove_instance",
            **_TIMEOUT,
        },
    ),
    "OP_BACKUP_IMPORT": _instance("instance-add"),
    "OP_CLUSTER_DESTROY": Hook("cluster-destroy", About.CLUSTER, Where.NOWHERE, _MASTER),
    "OP_CLUSTER_RENAME": Hook(
        "cluster-rename", About.CLUSTER, _MASTER, _MASTER, {"NEW_NAME": "name"}
    ),
    "OP_CLUSTER_SET_PARAMS": Hook(
        "cluster-modify", About.CLUSTER, _MASTER, _MASTER, {"NEW_VG_NAME": "vg_name"}
    ),
    "OP_CLUSTER_VERIFY_GROUP": Hook("cluster-verify", About.CLUSTER, Where.NOWHERE, _GROUP),
    "OP_GROUP_ADD": Hook("group-add", About.GROUP, _MASTER, _MASTER),
    "OP_GROUP_EVACUATE": Hook(
        "group-evacuate", About.GROUP, _GROUP, _GROUP, {"TARGET_GROUPS": "target_groups"}
    ),
    "OP_GROUP_REMOVE": Hook("group-remove", About.GROUP, _MASTER, _MASTER),
    "OP_GROUP_RENAME": Hook(
        "group-rename",
        About.GROUP,
        _GROUP,
        _GROUP,
        {"OLD_NAME": "group_name", "NEW_NAME": "new_name"},
    ),
    "OP_GROUP_SET_PARAMS": Hook(
        "group-modify", About.GROUP, _MASTER, _MASTER, {"NEW_ALLOC_POLICY": "alloc_policy"}
    ),
    "OP_INSTANCE_CHANGE_GROUP": Hook(
        "instance-change-group",
        About.INSTANCE,
        _MASTER,
        _MASTER,
        {"TARGET_GROUPS": "target_groups"},
    ),
    "OP_INSTANCE_CREATE": _instance(
        "instance-add", {"ADD_MODE": "mode", "FORTHCOMING": "forthcoming", "COMMIT": "commit"}
    ),
    "OP_INSTANCE_FAILOVER": _instance(
        "instance-failover", {"IGNORE_CONSISTENCY": "ignore_consistency", **_TIMEOUT}, moves=True
    ),
    "OP_INSTANCE_GROW_DISK": _instance("disk-grow", {"DISK": "disk", "AMOUNT": "amount"}),
    "OP_INSTANCE_MIGRATE": _instance(
        "instance-migrate", {"MIGRATE_LIVE": "live", "MIGRATE_CLEANUP": "cleanup"}, moves=True
    ),
    "OP_INSTANCE_MOVE": _instance("instance-move", {"TARGET_NODE": "target_node", **_TIMEOUT}),
    "OP_INSTANCE_REBOOT": _instance(
        "instance-reboot",
        {"IGNORE_SECONDARIES": "ignore_secondaries", "REBOOT_TYPE": "reboot_type", **_TIMEOUT},
    ),
    "OP_INSTANCE_RECREATE_DISKS": _instance("instance-recreate-disks"),
    "OP_INSTANCE_REINSTALL": _instance("instance-reinstall"),
    "OP_INSTANCE_REMOVE": Hook(
        "instance-remove", About.INSTANCE, _MASTER, Where.CONCERNED, _TIMEOUT
    ),
    "OP_INSTANCE_RENAME": _instance("instance-rename", {"INSTANCE_NEW_NAME": "new_name"}),
    "OP_INSTANCE_REPLACE_DISKS": _instance(
        "mirrors-replace", {"MODE": "mode", "NEW_SECONDARY": "remote_node"}
    ),
    "OP_INSTANCE_SET_PARAMS": _instance(
        "instance-modify", {"NEW_DISK_TEMPLATE": "disk_template", "RUNTIME_MEMORY": "runtime_mem"}
    ),
    "OP_INSTANCE_SHUTDOWN": _instance("instance-stop", {"TIMEOUT": "timeout"}),
    "OP_INSTANCE_STARTUP": _instance("instance-start", {"FORCE": "force"}),
    "OP_NETWORK_ADD": Hook("network-add", About.NETWORK, _MASTER, _MASTER),
    "OP_NETWORK_CONNECT": Hook("network-connect", About.NETWORK, _GROUP, _GROUP, _CONNECTION),
    "OP_NETWORK_DISCONNECT": Hook("network-disconnect", About.NETWORK, _GROUP, _GROUP, _CONNECTION),
    "OP_NETWORK_REMOVE": Hook("network-remove", About.NETWORK, _MASTER, _MASTER),
    "OP_NETWORK_RENAME": Hook(
        "network-rename",
        About.NETWORK,
        _MASTER,
        _MASTER,
        {"OLD_NAME": "network_name", "NEW_NAME": "new_name"},
    ),
    "OP_NETWORK_SET_PARAMS": Hook("network-modify", About.NETWORK, _MASTER, _MASTER),
    "OP_NODE_ADD": Hook("node-add", About.NODE, Where.OTHERS, Where.EVERY),
    "OP_NODE_MIGRATE": Hook("node-migrate", About.NODE, _MASTER, _MASTER),
    "OP_NODE_REMOVE": Hook("node-remove", About.NODE, Where.OTHERS, Where.EVERY),
    "OP_NODE_SET_PARAMS": Hook("node-modify", About.NODE, Where.NODE, Where.NODE),
}
