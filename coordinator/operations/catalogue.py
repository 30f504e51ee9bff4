"""The catalogue: one entry an operation. Nothing else lists operations.

What an operation takes is said by the fields of its class; what others have to know of it without
loading it is said here. Commands read this file each time they start, so it imports nothing.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """What is known of an operation before its class is loaded.

    Attributes:
        opcode: its name on the wire.
        module: below ``coordinator.operations``; the class is in it.
        command: the program and command that submit it; none: another command does, or programs.
        help: what the command does, in the list of a program's commands.
        route: method and path of Ganeti's REST interface; ``{}`` holds the field that it names.
        many: the field of which the command takes several values, one job each.
        every: likewise; where it is given none, all objects there are.
        confirm: asked first, unless told not to; ``{}`` is the object, or the objects.
        confirm_many: asked where several objects were chosen that nobody named.
        for_json: fields that ``--json`` sets besides.
        variants: modules of what the same opcode does where one of its flags is given.
        ignored: options of Ganeti's that ask for nothing here; scripts may give them.
    """

    opcode: str
    module: str
    command: str = ""
    help: str = ""
    route: str = ""
    many: str = ""
    every: str = ""
    confirm: str = ""
    confirm_many: str = ""
    for_json: Mapping[str, bool] = {}
    ignored: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()


_ENTRIES = (
    Entry(
        "OP_BACKUP_EXPORT",
        "backup.export",
        command="gnt-backup export",
        help="export an instance to a node",
        route="PUT /2/instances/{instance_name}/export",
        ignored=("-f", "--force", "--long-sleep"),
    ),
    Entry(
        "OP_BACKUP_IMPORT",
        "backup.importing",
        command="gnt-backup import",
        help="make an instance from an export",
        ignored=(
            "--identify-defaults",
            "--no-ip-check",
            "--no-name-check",
            "--no-wait-for-sync",
            "--opportunistic-locking",
        ),
    ),
    Entry(
        "OP_BACKUP_PREPARE",
        "backup.prepare",
        route="PUT /2/instances/{instance_name}/prepare-export",
    ),
    Entry(
        "OP_BACKUP_REMOVE",
        "backup.remove",
        command="gnt-backup remove",
        help="delete the exports of an instance",
    ),
    Entry(
        "OP_CLUSTER_ACTIVATE_MASTER_IP",
        "cluster.master_ip",
        command="gnt-cluster activate-master-ip",
        help="have the master take its address again",
    ),
    Entry(
        "OP_CLUSTER_DEACTIVATE_MASTER_IP",
        "cluster.master_ip",
        command="gnt-cluster deactivate-master-ip",
        help="have the master do without its address",
        confirm="Have the master do without its address? Connections to it will break.",
    ),
    Entry("OP_CLUSTER_DESTROY", "cluster.destroy"),
    Entry(
        "OP_CLUSTER_REDIST_CONF",
        "cluster.redist_conf",
        command="gnt-cluster redist-conf",
        help="tell all nodes again what they should know, and copy files to them",
        route="PUT /2/redistribute-config",
        ignored=("--yes-do-it",),
    ),
    Entry(
        "OP_CLUSTER_RENAME",
        "cluster.rename",
        command="gnt-cluster rename",
        help="give the cluster another name",
        confirm="Call this cluster {}?",
    ),
    Entry(
        "OP_CLUSTER_RENEW_CRYPTO",
        "cluster.renew_crypto",
        command="gnt-cluster renew-crypto",
        help="renew certificates, and secrets that others know",
        ignored=("-f", "--force", "--no-ssh-key-check"),
    ),
    Entry(
        "OP_CLUSTER_REPAIR_DISK_SIZES",
        "cluster.repair_disk_sizes",
        command="gnt-cluster repair-disk-sizes",
        help="record the sizes that disks have",
    ),
    Entry(
        "OP_CLUSTER_SET_PARAMS",
        "cluster.modify",
        command="gnt-cluster modify",
        help="change the cluster's parameters",
        route="PUT /2/modify",
        ignored=("-f", "--force"),
    ),
    Entry(
        "OP_CLUSTER_VERIFY",
        "cluster.verify",
        command="gnt-cluster verify",
        help="look for anything that is wrong",
        for_json={"findings": True},
        ignored=("--verify-ssh-clutter",),
    ),
    Entry("OP_CLUSTER_VERIFY_CONFIG", "cluster.verify_config"),
    Entry(
        "OP_CLUSTER_VERIFY_DISKS",
        "cluster.verify_disks",
        command="gnt-cluster verify-disks",
        help="look for disks that are missing or mirrored badly",
    ),
    Entry("OP_CLUSTER_VERIFY_GROUP", "cluster.verify_group"),
    Entry(
        "OP_DISK_REMOVE",
        "cluster.remove_disk",
        command="gnt-cluster remove-disk",
        help="delete a disk that belongs to no instance",
        confirm="Delete the detached disk {}, with all the data on it?",
    ),
    Entry("OP_EXT_STORAGE_DIAGNOSE", "storage.diagnose"),
    Entry(
        "OP_GROUP_ADD",
        "group.add",
        command="gnt-group add",
        help="make a group of nodes",
        route="POST /2/groups",
    ),
    Entry(
        "OP_GROUP_ASSIGN_NODES",
        "group.assign_nodes",
        command="gnt-group assign-nodes",
        help="give nodes to a group",
        route="PUT /2/groups/{group_name}/assign-nodes",
    ),
    Entry(
        "OP_GROUP_EVACUATE",
        "group.evacuate",
        command="gnt-group evacuate",
        help="move all instances of a group to others",
    ),
    Entry(
        "OP_GROUP_REMOVE",
        "group.remove",
        command="gnt-group remove",
        help="remove a group without nodes",
        route="DELETE /2/groups/{group_name}",
    ),
    Entry(
        "OP_GROUP_RENAME",
        "group.rename",
        command="gnt-group rename",
        help="give a group another name",
        route="PUT /2/groups/{group_name}/rename",
    ),
    Entry("OP_GROUP_REPAIR_STORAGE", "group.repair_storage"),
    Entry(
        "OP_GROUP_SET_PARAMS",
        "group.modify",
        command="gnt-group modify",
        help="change a group's parameters",
        route="PUT /2/groups/{group_name}/modify",
    ),
    Entry("OP_GROUP_VERIFY_DISKS", "group.verify_disks"),
    Entry(
        "OP_INSTANCE_ACTIVATE_DISKS",
        "instance.activate_disks",
        command="gnt-instance activate-disks",
        help="attach the disks of an instance that does not run",
        route="PUT /2/instances/{instance_name}/activate-disks",
        ignored=("--ignore-size",),
    ),
    Entry(
        "OP_INSTANCE_CHANGE_GROUP",
        "instance.change_group",
        command="gnt-instance change-group",
        help="move an instance to another group of nodes",
    ),
    Entry(
        "OP_INSTANCE_CONSOLE",
        "instance.console",
        route="GET /2/instances/{instance_name}/console",
    ),
    Entry(
        "OP_INSTANCE_CREATE",
        "instance.create",
        command="gnt-instance add",
        help="create an instance",
        route="POST /2/instances",
        variants=("instance.reserve", "instance.commit"),
        ignored=(
            "--no-ip-check",
            "--no-name-check",
            "--no-wait-for-sync",
            "--opportunistic-locking",
        ),
    ),
    Entry(
        "OP_INSTANCE_DEACTIVATE_DISKS",
        "instance.deactivate_disks",
        command="gnt-instance deactivate-disks",
        help="detach the disks of an instance that does not run",
        route="PUT /2/instances/{instance_name}/deactivate-disks",
    ),
    Entry(
        "OP_INSTANCE_DISCARD_COPY",
        "instance.discard_copy",
        command="gnt-instance discard-copy",
        help="give up one side of disks that were written to apart",
        confirm="Give up what was written to one copy of {}?",
    ),
    Entry(
        "OP_INSTANCE_FAILOVER",
        "instance.failover",
        command="gnt-instance failover",
        help="move instances, stopping them on the way",
        route="PUT /2/instances/{instance_name}/failover",
        many="instance_name",
        confirm="Stop {}, to start on another node?",
        ignored=("--ignore-ipolicy",),
    ),
    Entry(
        "OP_INSTANCE_GROW_DISK",
        "instance.grow_disk",
        command="gnt-instance grow-disk",
        help="make a disk of an instance larger",
        route="POST /2/instances/{instance_name}/disk/{disk}/grow",
    ),
    Entry(
        "OP_INSTANCE_MIGRATE",
        "instance.migrate",
        command="gnt-instance migrate",
        help="move running instances",
        route="PUT /2/instances/{instance_name}/migrate",
        many="instance_name",
        confirm="Move {} to another node, running?",
        ignored=("--ignore-hvversions", "--ignore-ipolicy", "--no-runtime-changes"),
    ),
    Entry(
        "OP_INSTANCE_MOVE",
        "instance.move",
        command="gnt-instance move",
        help="move an instance to any node, copying its disks",
        confirm="Stop {}, to copy its disks to another node?",
        ignored=("--ignore-consistency",),
    ),
    Entry(
        "OP_INSTANCE_MULTI_ALLOC",
        "instance.create_many",
        route="POST /2/instances-multi-alloc",
    ),
    Entry(
        "OP_INSTANCE_QUERY_DATA",
        "instance.query_data",
        route="GET /2/instances/{instances}/info",
    ),
    Entry(
        "OP_INSTANCE_REBOOT",
        "instance.reboot",
        command="gnt-instance reboot",
        help="reboot instances",
        route="POST /2/instances/{instance_name}/reboot",
        many="instance_name",
        confirm_many="Reboot {}?",
    ),
    Entry(
        "OP_INSTANCE_RECREATE_DISKS",
        "instance.recreate_disks",
        command="gnt-instance recreate-disks",
        help="make missing disks anew, empty",
        route="POST /2/instances/{instance_name}/recreate-disks",
    ),
    Entry(
        "OP_INSTANCE_REINSTALL",
        "instance.reinstall",
        command="gnt-instance reinstall",
        help="install an operating system anew",
        route="POST /2/instances/{instance_name}/reinstall",
        many="instance_name",
        confirm="Install {} anew, and lose all the data on the disks?",
    ),
    Entry(
        "OP_INSTANCE_REMOVE",
        "instance.remove",
        command="gnt-instance remove",
        help="delete instances",
        route="DELETE /2/instances/{instance_name}",
        many="instance_name",
        confirm="Delete {}, with all the data on the disks?",
    ),
    Entry(
        "OP_INSTANCE_REMOVE_SNAPSHOT",
        "instance.remove_snapshot",
        command="gnt-instance remove-snapshot",
        help="delete a snapshot of an instance's disks",
        confirm="Delete a snapshot of {}?",
    ),
    Entry(
        "OP_INSTANCE_RENAME",
        "instance.rename",
        command="gnt-instance rename",
        help="give an instance another name",
        route="PUT /2/instances/{instance_name}/rename",
        ignored=("-f", "--force", "--name-check", "--no-name-check", "--ip-check", "--no-ip-check"),
    ),
    Entry(
        "OP_INSTANCE_REPLACE_DISKS",
        "instance.replace_disks",
        command="gnt-instance replace-disks",
        help="make new copies of mirrored disks",
        route="POST /2/instances/{instance_name}/replace-disks",
        ignored=("--ignore-ipolicy",),
    ),
    Entry(
        "OP_INSTANCE_ROLLBACK",
        "instance.rollback",
        command="gnt-instance rollback",
        help="have an instance's disks be as in a snapshot",
        confirm="Give up what was written to the disks of {} since?",
    ),
    Entry(
        "OP_INSTANCE_SET_PARAMS",
        "instance.modify",
        command="gnt-instance modify",
        help="change an instance's parameters, nics and disks",
        route="PUT /2/instances/{instance_name}/modify",
    ),
    Entry(
        "OP_INSTANCE_SHUTDOWN",
        "instance.shutdown",
        command="gnt-instance shutdown",
        help="stop instances",
        route="PUT /2/instances/{instance_name}/shutdown",
        many="instance_name",
        confirm_many="Stop {}?",
    ),
    Entry(
        "OP_INSTANCE_SNAPSHOT",
        "instance.snapshot",
        command="gnt-instance snapshot",
        help="keep what is on an instance's disks now",
    ),
    Entry(
        "OP_INSTANCE_STARTUP",
        "instance.startup",
        command="gnt-instance startup",
        help="start instances",
        route="PUT /2/instances/{instance_name}/startup",
        many="instance_name",
        confirm_many="Start {}?",
    ),
    Entry(
        "OP_NETWORK_ADD",
        "network.add",
        command="gnt-network add",
        help="make a network",
        route="POST /2/networks",
    ),
    Entry(
        "OP_NETWORK_CONNECT",
        "network.connect",
        command="gnt-network connect",
        help="connect groups to a network",
        every="group_name",
        route="PUT /2/networks/{network_name}/connect",
    ),
    Entry(
        "OP_NETWORK_DISCONNECT",
        "network.disconnect",
        command="gnt-network disconnect",
        help="disconnect groups from a network",
        every="group_name",
        route="PUT /2/networks/{network_name}/disconnect",
    ),
    Entry(
        "OP_NETWORK_REMOVE",
        "network.remove",
        command="gnt-network remove",
        help="remove a network",
        route="DELETE /2/networks/{network_name}",
        ignored=("-f", "--force"),
    ),
    Entry(
        "OP_NETWORK_RENAME",
        "network.rename",
        command="gnt-network rename",
        help="give a network another name",
        route="PUT /2/networks/{network_name}/rename",
    ),
    Entry(
        "OP_NETWORK_SET_PARAMS",
        "network.modify",
        command="gnt-network modify",
        help="change a network's parameters",
        route="PUT /2/networks/{network_name}/modify",
    ),
    Entry(
        "OP_NODE_ADD",
        "node.add",
        command="gnt-node add",
        help="take a machine into the cluster",
        # There are no keys of ssh to be set up, and a machine that has a token is in no cluster.
        ignored=("--force-join", "--no-node-setup", "--no-ssh-key-check"),
    ),
    Entry(
        "OP_NODE_EVACUATE",
        "node.evacuate",
        command="gnt-node evacuate",
        help="move all instances off a node",
        route="POST /2/nodes/{node_name}/evacuate",
        confirm="Move the instances of {} to other nodes?",
    ),
    Entry(
        "OP_NODE_FAILOVER",
        "node.failover",
        command="gnt-node failover",
        help="fail over all instances of a node",
        confirm="Stop the instances of {} and start them elsewhere?",
    ),
    Entry(
        "OP_NODE_FENCE",
        "node.fence",
        command="gnt-node fence",
        help="switch off a node that does not answer, and mark it offline",
        confirm="Switch {} off, and its guests with it?",
    ),
    Entry(
        "OP_NODE_MAINTAIN",
        "node.maintain",
        command="gnt-node maintain",
        help="have a node without instances for a while, and have all come back",
    ),
    Entry(
        "OP_NODE_MIGRATE",
        "node.migrate",
        command="gnt-node migrate",
        help="migrate all instances of a node",
        route="POST /2/nodes/{node_name}/migrate",
        confirm="Move the instances of {} to other nodes, running?",
        ignored=("--ignore-ipolicy", "--no-runtime-changes"),
    ),
    Entry(
        "OP_NODE_MODIFY_STORAGE",
        "node.modify_storage",
        command="gnt-node modify-storage",
        help="have new volumes take space of a device, or not",
        route="PUT /2/nodes/{node_name}/storage/modify",
    ),
    Entry(
        "OP_NODE_POWERCYCLE",
        "node.powercycle",
        command="gnt-node powercycle",
        help="reboot a node at once",
        route="POST /2/nodes/{node_name}/powercycle",
        confirm="Reboot {} at once, without a word to its guests and disks?",
    ),
    Entry("OP_NODE_QUERYVOLS", "node.query_volumes"),
    Entry("OP_NODE_QUERY_STORAGE", "node.query_storage", route="GET /2/nodes/{nodes}/storage"),
    Entry(
        "OP_NODE_REMOVE",
        "node.remove",
        command="gnt-node remove",
        help="take a node out of the cluster",
    ),
    Entry(
        "OP_NODE_REMOVE_LEFTOVERS",
        "node.remove_leftovers",
        command="gnt-node remove-leftovers",
        help="delete what a node has of disks that are not its own",
        confirm="Delete for good what is left over on {}?",
    ),
    Entry(
        "OP_NODE_RENAME",
        "node.rename",
        command="gnt-node rename",
        help="give a node another name",
    ),
    Entry("OP_NODE_RENEW_KEY", "node.renew_key"),
    Entry(
        "OP_NODE_SET_PARAMS",
        "node.modify",
        command="gnt-node modify",
        help="change what nodes are for",
        route="POST /2/nodes/{node_name}/modify",
        many="node_name",
        confirm_many="Change {}?",
    ),
    Entry("OP_OOB_COMMAND", "node.power"),
    Entry("OP_OS_DIAGNOSE", "os.diagnose", route="GET /2/os"),
    Entry(
        "OP_REPAIR_NODE_STORAGE",
        "node.repair_storage",
        command="gnt-node repair-storage",
        help="have a volume group do without devices that are missing",
        route="PUT /2/nodes/{node_name}/storage/repair",
        confirm="Give up what {} had on missing devices?",
    ),
    Entry("OP_RESTRICTED_COMMAND", "node.restricted"),
    Entry("OP_TAGS_DEL", "tags.remove", route="DELETE /2/tags"),
    Entry("OP_TAGS_GET", "tags.get", route="GET /2/tags"),
    Entry("OP_TAGS_SEARCH", "tags.search"),
    Entry("OP_TAGS_SET", "tags.add", route="PUT /2/tags"),
    Entry("OP_TEST_ALLOCATOR", "test.allocator"),
    Entry(
        "OP_TEST_DELAY",
        "test.delay",
        command="gnt-debug delay",
        help="run a job that only waits",
    ),
    Entry("OP_TEST_DUMMY", "test.dummy"),
    Entry("OP_TEST_JQUEUE", "test.job_queue"),
    Entry(
        "OP_TEST_OS_PARAMS",
        "test.os_parameters",
        command="gnt-debug test-osparams",
        help="tell whether secret parameters arrive",
    ),
)

CATALOGUE: Mapping[str, Entry] = {entry.opcode: entry for entry in _ENTRIES}
"""The entry of each operation, by its opcode."""


def commands_of(program: str) -> dict[str, Entry]:
    """Return the operations that a program's commands submit: ``startup`` of ``gnt-instance``."""
    return {
        name: entry
        for entry in _ENTRIES
        for area, _, name in (entry.command.partition(" "),)
        if area == program
    }
