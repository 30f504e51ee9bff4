"""Every command: what it does, and which file to import when it is used."""

from typing import NamedTuple


class Command(NamedTuple):
    """Either ``run`` or ``opcode`` is given.

    ``run`` is a function of ``coordinator.cli``, as ``file:function``; it gets the command's
    name, as "gnt-instance list", and the words after it, and returns the exit code. ``opcode``
    is of the operation that the command submits, which says what options there are.
    """

    help: str
    run: str = ""
    opcode: str = ""
    confirm: str = ""  # asked first, unless told not to; {} is the object, or the objects
    many: bool = False  # takes several instances, one job each
    confirm_many: str = ""  # asked where several were chosen that nobody named
    for_json: dict[str, bool] = {}  # fields that --json sets besides


class Area(NamedTuple):
    help: str
    commands: dict[str, Command]
    aliases: dict[str, str] = {}


_FIELDS = Command("tell what a list can show", "lists:list_fields")

AREAS = {
    "gnt-cluster": Area(
        "the cluster as a whole",
        {
            "init": Command("make a cluster of this node", "begin:init"),
            "info": Command("show the cluster's parameters", "info:cluster_info"),
            "getmaster": Command("print the name of the master", "cluster:getmaster"),
            "verify": Command(
                "look for anything that is wrong", opcode="OP_CLUSTER_VERIFY",
                for_json={"findings": True},
            ),
            "modify": Command("change the cluster's parameters", opcode="OP_CLUSTER_SET_PARAMS"),
            "renew-crypto": Command(
                "renew the certificates of nodes", opcode="OP_CLUSTER_RENEW_CRYPTO"
            ),
            "master-failover": Command("make this node the master", "begin:take_over"),
            "allocate": Command("tell where an instance would go, and why", "placing:allocate"),
            "capacity": Command("tell how many instances fit", "placing:capacity"),
            "balance": Command("tell or make moves that balance it", "placing:balance"),
            "queue": Command("close the job queue, open it, or tell", "cluster:queue"),
            "watcher": Command("have the watcher pause or go on, or tell", "watcher:watcher"),
            "version": Command("print the version", "cluster:version"),
            "destroy": Command("end the cluster", "begin:destroy"),
        },
        {"show": "info", "masterfailover": "master-failover"},
    ),
    "gnt-node": Area(
        "the machines",
        {
            "list": Command("list nodes", "lists:list_objects"),
            "list-fields": _FIELDS,
            "info": Command("show all about nodes", "info:node_info"),
            "add": Command("take a machine into the cluster", opcode="OP_NODE_ADD"),
            "modify": Command("change what a node is for", opcode="OP_NODE_SET_PARAMS"),
            "evacuate": Command(
                "move all instances off a node", opcode="OP_NODE_EVACUATE",
                confirm="Move the instances of {} to other nodes?",
            ),
            "remove": Command("take a node out of the cluster", opcode="OP_NODE_REMOVE"),
            "powercycle": Command(
                "reboot a node at once", opcode="OP_NODE_POWERCYCLE",
                confirm="Reboot {} at once, without a word to its guests and disks?",
            ),
        },
        {"show": "info"},
    ),
    "gnt-instance": Area(
        "the virtual machines",
        {
            "list": Command("list instances", "lists:list_objects"),
            "list-fields": _FIELDS,
            "info": Command("show all about instances", "info:instance_info"),
            "add": Command("create an instance", opcode="OP_INSTANCE_CREATE"),
            "batch-create": Command("create the instances in a file", "batch:create_many"),
            "change-group": Command(
                "move an instance to another group of nodes", opcode="OP_INSTANCE_CHANGE_GROUP",
                confirm="Move {} to another group of nodes?",
            ),
            "startup": Command(
                "start instances", opcode="OP_INSTANCE_STARTUP", many=True, confirm_many="Start {}?"
            ),
            "shutdown": Command(
                "stop instances", opcode="OP_INSTANCE_SHUTDOWN", many=True, confirm_many="Stop {}?"
            ),
            "reboot": Command(
                "reboot instances", opcode="OP_INSTANCE_REBOOT", many=True,
                confirm_many="Reboot {}?",
            ),
            "remove": Command(
                "delete instances", opcode="OP_INSTANCE_REMOVE", many=True,
                confirm="Delete {}, with all the data on the disks?",
            ),
            "failover": Command(
                "move instances, stopping them on the way", opcode="OP_INSTANCE_FAILOVER",
                many=True, confirm="Stop {}, to start on another node?",
            ),
            "migrate": Command(
                "move running instances", opcode="OP_INSTANCE_MIGRATE", many=True,
                confirm="Move {} to another node, running?",
            ),
            "console": Command("use an instance's serial console", "console:console"),
        },
        {"show": "info", "start": "startup", "stop": "shutdown"},
    ),
    "gnt-job": Area(
        "what the cluster is doing and has done",
        {
            "list": Command("list jobs", "lists:list_jobs"),
            "list-fields": _FIELDS,
            "info": Command("show all about jobs", "jobs:info"),
            "watch": Command("follow a job", "jobs:watch"),
            "wait": Command("wait for the end of a job", "jobs:wait"),
            "why": Command("tell what jobs wait for", "jobs:why"),
            "cancel": Command("cancel jobs", "jobs:cancel"),
            "change-priority": Command("have jobs go earlier or later", "jobs:change_priority"),
            "archive": Command("put ended jobs out of sight", "jobs:archive"),
            "autoarchive": Command("put jobs that ended long ago out of sight", "jobs:autoarchive"),
        },
        {"show": "info"},
    ),
    "gnt-debug": Area(
        "for those who look under the hood",
        {
            "delay": Command("run a job that only waits", opcode="OP_TEST_DELAY"),
            "locks": Command("list locks, held and wanted", "lists:list_locks"),
        },
    ),
}  # fmt: skip

UMBRELLA = {
    "join-token": Command("print what lets a cluster take this node", "token:show"),
}
