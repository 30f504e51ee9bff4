"""Every command: what it does, and which file to import when it is used.

Those that submit one operation are in the catalogue of operations; the others are here.
"""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator.operations.catalogue import Entry, commands_of


class Command(NamedTuple):
    """A command that is a function.

    ``run`` is a function of ``coordinator.cli``, as ``module:function``; it gets the command's
    name, as "gnt-instance list", and the words after it, and returns the exit code.
    """

    help: str
    run: str


class Area(NamedTuple):
    """A program; its commands are in the order of their names."""

    help: str
    commands: Mapping[str, Command | Entry]
    aliases: Mapping[str, str]


def _area(
    program: str, help: str, functions: Mapping[str, Command], aliases: Mapping[str, str]
) -> tuple[str, Area]:
    commands: dict[str, Command | Entry] = {**functions, **commands_of(program)}
    return program, Area(help, dict(sorted(commands.items())), aliases)


_FIELDS = Command("tell what a list can show", "lists:list_fields")
_TAGS = {
    "add-tags": Command("add tags", "tags:add_tags"),
    "remove-tags": Command("remove tags", "tags:remove_tags"),
    "list-tags": Command("print the tags", "tags:list_tags"),
}

AREAS = dict(
    (
        _area(
            "gnt-cluster",
            "the cluster as a whole",
            {
                **_TAGS,
                "init": Command("make a cluster of this node", "init:init"),
                "info": Command("show the cluster's parameters", "info.cluster:cluster_info"),
                "epo": Command("switch nodes off in order, or on again", "epo:epo"),
                "getmaster": Command("print the name of the master", "cluster:getmaster"),
                "master-ping": Command("tell whether the master answers", "cluster:master_ping"),
                "master-failover": Command("make this node the master", "takeover:take_over"),
                "command": Command("run a command on nodes", "remote:command"),
                "copyfile": Command("copy a file of the master to nodes", "remote:copyfile"),
                "allocate": Command("tell where an instance would go, and why", "placing:allocate"),
                "capacity": Command("tell how many instances fit", "placing:capacity"),
                "balance": Command("tell or make moves that balance it", "placing:balance"),
                "queue": Command("close the job queue, open it, or tell", "cluster:queue"),
                "watcher": Command("have the watcher pause or go on, or tell", "watcher:watcher"),
                "show-ispecs-cmd": Command(
                    "print the command that makes a cluster of this policy", "show_specs:show_specs"
                ),
                "search-tags": Command("find tags of all objects", "tags:search_tags"),
                "export-config": Command(
                    "print the configuration, without secrets", "cluster:export_config"
                ),
                "version": Command("print the version", "cluster:version"),
                "destroy": Command("end the cluster", "destroy:destroy"),
            },
            {"show": "info", "masterfailover": "master-failover"},
        ),
        _area(
            "gnt-node",
            "the machines",
            {
                **_TAGS,
                "list": Command("list nodes", "lists:list_objects"),
                "list-fields": _FIELDS,
                "info": Command("show all about nodes", "info.node:node_info"),
                "volumes": Command("list logical volumes", "storage:list_volumes"),
                "list-storage": Command("list what disks are kept in", "storage:list_storage"),
                "list-drbd": Command("list a node's mirrored disks", "storage:list_mirrors"),
                "power": Command("switch nodes on or off past their systems", "power:power"),
                "health": Command("tell how the machines of nodes are", "power:health"),
                "restricted-command": Command(
                    "run a command that root of the nodes has allowed", "power:restricted"
                ),
            },
            {"show": "info"},
        ),
        _area(
            "gnt-group",
            "groups of nodes, within which instances move freely",
            {
                **_TAGS,
                "list": Command("list groups", "lists:list_objects"),
                "list-fields": _FIELDS,
                "info": Command("show all about groups", "info.group:group_info"),
                "show-ispecs-cmd": Command(
                    "print the command that makes a group of this policy",
                    "show_specs:show_group_specs",
                ),
            },
            {},
        ),
        _area(
            "gnt-network",
            "addresses for nics, and how they are plugged in",
            {
                **_TAGS,
                "list": Command("list networks", "lists:list_objects"),
                "list-fields": _FIELDS,
                "info": Command("show all about networks", "info.network:network_info"),
            },
            {},
        ),
        _area(
            "gnt-instance",
            "the virtual machines",
            {
                **_TAGS,
                "list": Command("list instances", "lists:list_objects"),
                "list-fields": _FIELDS,
                "info": Command("show all about instances", "info.instance:instance_info"),
                "batch-create": Command("create the instances in a file", "batch:create_many"),
                "why": Command("tell how instances are and what to do", "why_instance:why"),
                "console": Command("use an instance's serial console", "console:console"),
                "list-snapshots": Command(
                    "list what was kept of disks", "snapshots:list_snapshots"
                ),
            },
            {"show": "info", "start": "startup", "stop": "shutdown"},
        ),
        _area(
            "gnt-backup",
            "exports of instances",
            {
                "list": Command("list exports", "lists:list_exports"),
                "list-fields": _FIELDS,
            },
            {},
        ),
        _area(
            "gnt-job",
            "what the cluster is doing and has done",
            {
                "list": Command("list jobs", "lists:list_jobs"),
                "list-fields": _FIELDS,
                "info": Command("show all about jobs", "jobs:info"),
                "watch": Command("follow a job", "jobs:watch"),
                "wait": Command("wait for the end of a job", "jobs:wait"),
                "why": Command("tell what jobs wait for", "jobs:why"),
                "cancel": Command("cancel jobs", "chosen_jobs:cancel"),
                "change-priority": Command(
                    "have jobs go earlier or later", "chosen_jobs:change_priority"
                ),
                "archive": Command("put ended jobs out of sight", "chosen_jobs:archive"),
                "autoarchive": Command(
                    "put jobs that ended long ago out of sight", "jobs:autoarchive"
                ),
            },
            {"show": "info"},
        ),
        _area(
            "gnt-filter",
            "rules that jobs are held to before they begin",
            {
                "add": Command("make a rule", "filters:add"),
                "delete": Command("delete a rule", "filters:delete"),
                "info": Command("show all about rules", "filters:info"),
                "list": Command("list rules", "lists:list_objects"),
                "list-fields": _FIELDS,
                "replace": Command("put a rule in the place of another", "filters:replace"),
            },
            {},
        ),
        _area(
            "gnt-os",
            "what is installed on instances",
            {
                "list": Command("list what can be installed", "operating_systems:list_systems"),
                "diagnose": Command(
                    "tell which nodes can install what", "operating_systems:diagnose"
                ),
                "info": Command("show all about operating systems", "operating_systems:info"),
                "modify": Command(
                    "change what the cluster has for one", "operating_systems:modify"
                ),
            },
            {"show": "info"},
        ),
        _area(
            "gnt-storage",
            "providers of external storage",
            {
                "diagnose": Command("tell where providers can be used", "providers:diagnose"),
                "info": Command("show all about providers", "providers:info"),
            },
            {},
        ),
        _area(
            "gnt-debug",
            "for those who look under the hood",
            {
                "iallocator": Command("show what an allocator is asked", "try_allocator:ask"),
                "locks": Command("list locks, held and wanted", "lists:list_locks"),
                "submit-job": Command("submit jobs from files", "job_files:submit_job"),
                "test-jobqueue": Command("see that the job queue works", "try_queue:try_queue"),
            },
            {"allocator": "iallocator"},
        ),
    )
)

UMBRELLA = {
    "add-rest-user": Command("let somebody use the REST interface", "rest_users:add"),
    "join-token": Command("print what lets a cluster take this node", "token:show"),
    "list-rest-users": Command("list who may use the REST interface", "rest_users:show"),
    "remove-rest-user": Command("take a user of the REST interface away", "rest_users:remove"),
}
