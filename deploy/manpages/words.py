"""What the pages say that cannot be read off the code."""

from typing import NamedTuple

EXIT_CODES = {
    0: "It went well.",
    1: "verify found an error, a job was left as it was, or the failure is of no other kind.",
    2: "The request makes no sense: an unknown option, a wrong unit, a missing value.",
    3: "There is no such object.",
    4: "Not in the present state of the object, the node or the cluster.",
    5: "This node is in no cluster.",
    6: "There is no room for it now.",
    7: "A node, or a program on this one, tried and failed.",
    8: "Somebody did not answer; what became of the request is not known.",
    9: "An operation failed, and so did undoing it; an operator has to look.",
    10: "The job was cancelled.",
    11: "This node is not the master.",
    13: "A question had to be answered with yes, and was not.",
    14: "A list was asked for a field that does not exist.",
    70: "A bug of Gantry.",
    130: "Interrupted; a job that was being followed goes on.",
    141: "Whoever read the output has gone.",
}

_JOBS = (
    "A command that changes something submits a job, shows what the job says, and ends when the "
    "job does. Ctrl-C ends the command, not the job; gnt-job watch shows it again. With --submit "
    "the command ends at once."
)

INTRODUCTIONS = {
    "gantry": [
        "Every command gnt-AREA COMMAND can also be given as gantry AREA COMMAND. The commands "
        "below exist here only.",
    ],
    "gnt-cluster": [
        "Makes a cluster, looks at it, moves its master role, and ends it. init and "
        "master-failover are given on the node that is to be the master, getmaster and version on "
        "any node, all others on the master.",
    ],
    "gnt-node": [
        "Nodes are the machines that run gantry-noded. The commands are given on the master.",
        _JOBS,
    ],
    "gnt-backup": [
        "An export is what is needed to make an instance anew: its parameters and what was on its "
        "disks, in a directory of a node, /var/lib/gantry/export/ with the name of the instance. "
        "It is laid out as Ganeti's are, with config.ini and a file for each disk, which holds all "
        "of the disk. Zeros take no space in it. The commands are given on the master.",
        _JOBS,
    ],
    "gnt-group": [
        "A group is a set of nodes among which instances move freely: those of one room, or on one "
        "network. Every node is in one group. The commands are given on the master.",
        _JOBS,
    ],
    "gnt-network": [
        "A network is a range of addresses for the nics of instances. Groups of nodes are connected"
        " to it, each in its own way; nics that are made with network=NAME are plugged in like"
        " that, and get a free address with ip=pool. The commands are given on the master.",
        _JOBS,
    ],
    "gnt-instance": [
        "Instances are the virtual machines of the cluster. The commands are given on the master.",
        _JOBS,
        "Sizes are in MiB, or have a suffix M, G, T or P. Disks and nics are counted from 0.",
    ],
    "gnt-job": [
        "Jobs are what the cluster does: each is a list of operations, kept with the state of the "
        "cluster, so that it survives its coordinator. The commands are given on the master.",
    ],
    "gnt-filter": [
        "A filter rule says what becomes of jobs that have not begun: they are accepted, paused "
        "until the rule is deleted, rejected, or limited to so many at a time. The rule of the "
        "lowest priority of which all predicates are true of a job decides; of equals that with "
        "the lower watermark, then UUID. Jobs that run are left alone. A rule is "
        "heeded at once, and needs no job. The commands are given on the master.",
        'A predicate is a list of a name and a condition of the query language, in JSON. ["jobid", '
        '[">", "id", "watermark"]] is true of jobs that are newer than the rule: its watermark is '
        'the newest job when it was made or replaced. ["opcode", ["=", "OP_ID", '
        '"OP_INSTANCE_CREATE"]] is true of a job that has such an operation; parameters of '
        'operations can be named as well. ["reason", ["=~", "reason", "^bunny"]] is true of a job '
        "with such a --reason; source and timestamp are the other fields.",
        "A rule with the action CONTINUE does nothing: it is kept for another time.",
    ],
    "gnt-os": [
        "Shows what can be installed on instances: definitions of operating systems, which root "
        "has put on the nodes. The commands are given on the master.",
    ],
    "gnt-storage": ["Shows the providers of external storage that nodes have."],
    "gnt-debug": ["Shows locks, and tries the job queue. The commands are given on the master."],
}

# Each is parsed by a test.
EXAMPLES = {
    "gantry": [
        ("gantry join-token", "On a machine that is to join: print its token."),
        (
            "gantry add-rest-user --role owner --tag shop --expires 30d shop",
            "Let a program start and stop the instances with the tag shop, for a month.",
        ),
        ("gantry instance list --json", "List instances, for a program."),
    ],
    "gnt-cluster": [
        (
            "gnt-cluster init --address 192.0.2.1 --shared-file-storage-dir /srv/gantry prod",
            "Make a cluster of this node, whose instances have their disks on a shared directory.",
        ),
        ("gnt-cluster master-failover", "Make this node the master, the old one being dead."),
        ("gnt-cluster verify --error-codes", "Look for anything that is wrong."),
        (
            "gnt-cluster modify --default-iallocators allocate=ours:hail,relocate=none",
            "Have the program ours place new instances, the built-in allocator if it fails; and "
            "have moves name their target.",
        ),
        ("gnt-cluster watcher pause 4h", "Before maintenance: have nothing started by itself."),
    ],
    "gnt-backup": [
        ("gnt-backup export -n beta web1", "Stop web1, copy all of it to beta, and start it."),
        (
            "gnt-backup import --src-node beta -n gamma web1",
            "Make web1 anew on gamma, as it was exported to beta.",
        ),
        ("gnt-backup list -n beta", "List the exports on beta."),
    ],
    "gnt-node": [
        (
            "gnt-node add --address 192.0.2.2 --token-file token beta",
            "Take a machine in, by the token that gantry join-token printed there.",
        ),
        (
            "gnt-node modify --offline=yes beta",
            "Say that a node is dead, so that it is not asked any more and its instances can be "
            "failed over.",
        ),
        ("gnt-node evacuate gamma", "Move all instances to other nodes."),
        (
            "gnt-node list -o name,role,mfree --no-headers --separator=,",
            "List nodes, for a script.",
        ),
    ],
    "gnt-group": [
        ("gnt-group add --alloc-policy=last_resort attic", "Make a group."),
        ("gnt-group assign-nodes attic gamma delta", "Give nodes to it."),
        ("gnt-group evacuate --to attic cellar", "Move all instances of a group to another."),
    ],
    "gnt-network": [
        ("gnt-network add --network 192.0.2.0/24 --gateway 192.0.2.1 lan", "Make a network."),
        ("gnt-network connect --link br0 lan default", "Plug its nics into br0."),
        (
            "gnt-instance add -t plain -s 10G --net 0:network=lan,ip=pool web1",
            "Give an instance the first address that is free.",
        ),
    ],
    "gnt-instance": [
        (
            "gnt-instance add -t sharedfile --disk 0:size=10G -B memory=1G,vcpus=2 "
            "--net 0:link=br0 -H kvm:kernel_path=/srv/images/vmlinuz web1",
            "Create an instance where the allocator finds the best place, and start it.",
        ),
        ("gnt-instance batch-create web.json", "Create all instances of a file."),
        ("gnt-instance migrate -n beta web1", "Move it to beta while it runs."),
        ("gnt-instance shutdown --primary beta", "Stop all that runs on beta."),
        ("gnt-instance startup 'web*' db1", "Start several, each by a job of its own."),
        (
            'gnt-instance list -F \'pnode == "beta" and status == "running"\'',
            "List what runs on beta.",
        ),
        ("gnt-instance console web1", "Use its serial console; Ctrl-] ends that."),
    ],
    "gnt-job": [
        ("gnt-job list --running", "List what is being done now."),
        ("gnt-job watch 42", "Follow a job."),
        ("gnt-job cancel 42", "End it; what it has done is undone."),
    ],
    "gnt-filter": [
        (
            "gnt-filter add --action PAUSE --reason maintenance "
            """--predicates '[["jobid", [">", "id", "watermark"]]]'""",
            "Let jobs that are there end, and have new ones wait.",
        ),
        (
            "gnt-filter add --action 'RATE_LIMIT 2' "
            """--predicates '[["opcode", ["=", "OP_ID", "OP_INSTANCE_MIGRATE"]]]'""",
            "Have two migrations run at a time.",
        ),
        (
            "gnt-filter add --action REJECT --priority 10 "
            """--predicates '[["opcode", ["=", "OP_ID", "OP_INSTANCE_CREATE"]]]'""",
            "Have no instances made.",
        ),
        ("gnt-filter list", "List the rules, in the order in which they are asked."),
    ],
    "gnt-os": [
        ("gnt-os list", "See what can be installed."),
        (
            "gnt-os modify -O mirror=http://deb.example.com debootstrap",
            "Have all instances installed from there.",
        ),
        ("gnt-os diagnose", "See which node lacks a definition, or cannot use it, and why."),
    ],
    "gnt-storage": [
        ("gnt-storage diagnose", "See on which nodes which provider can be used, and why not."),
    ],
    "gnt-debug": [
        ("gnt-debug locks -o name,mode,owner,pending", "See who holds what, and who waits."),
        (
            "gnt-debug iallocator --dir out -I hail -m allocate -t sharedfile --disks 10G web9",
            "See what the built-in allocator would answer.",
        ),
        ("gnt-debug delay --no-locks 10", "Keep the queue busy for ten seconds."),
        ("gnt-debug delay --no-master -n beta 60", "Keep beta locked for a minute."),
    ],
}


class Daemon(NamedTuple):
    name: str
    description: list[str]
    files: list[tuple[str, str]]
    signals: list[tuple[str, str]]


DAEMONS = {
    "gantry-monitor": Daemon(
        "the monitoring agent of Gantry",
        [
            "Tells how this node fares, to whoever asks over HTTP: Prometheus at /metrics, what "
            "knows Ganeti's monitoring agent as there. hbal and hail ask it with --mond, Ganeti's "
            "and ours, so that load is balanced as it is and not as it is guessed.",
            "It need not run. deploy/install puts it there without enabling it: systemctl enable "
            "--now gantry-monitor starts it. It has no rights, and nothing is kept from anybody "
            "who can reach its port. It looks at files below /proc every five seconds, however "
            "many ask.",
            "/ tells the versions of the protocol, /1/list/collectors what there is, "
            "/1/report/all everything, /1/report/default/cpu-avg-load the load of the last ten "
            "minutes in processors: 1.5 is one and a half kept busy. /1/report/storage/diskstats "
            "has the counters of all block devices, /1/report/storage/drbd how mirrored disks are, "
            "on nodes with DRBD's module 8.4, /1/report/storage/lv the logical volumes as LVM has "
            "written them down for it in the last minute.",
            "/metrics has load, memory, the disks of the machine and DRBD's devices by their "
            "states, in the text format of Prometheus: as many figures as the machine has disks, "
            "however many guests run.",
        ],
        [
            ("/etc/default/gantry-monitor", "Options: GANTRY_MONITOR_OPTIONS=…"),
            ("/run/gantry/volumes.json", "What gantry-volumes.timer has LVM tell, each minute."),
        ],
        [("SIGTERM, SIGINT", "End.")],
    ),
    "gantry-confd": Daemon(
        "the configuration daemon of Gantry",
        [
            "Answers over UDP what Ganeti's clients of its confd ask: who is master, which role a "
            "node has, where the instance with an address runs, and any part of the "
            "configuration. It does not ask the coordinator, so it answers also when there is no "
            "master.",
            "It need not run. deploy/install puts it there without enabling it: systemctl enable "
            "--now gantry-confd starts it. It answers on master candidates, or on all nodes after "
            "gnt-cluster modify --confd-everywhere yes: the master publishes the configuration "
            "there within a second of each change, and takes it back from a node that is to "
            "answer no more. Answers have the number of the change that they "
            "know; of several, the one with the highest number counts.",
            "Only who has the key of the cluster is answered, once for each question, and nobody "
            "hears more than there is in lists: no secret is published. Clocks may differ by five "
            "minutes.",
        ],
        [
            ("/etc/default/gantry-confd", "Options: GANTRY_CONFD_OPTIONS=…"),
            ("/var/lib/gantry/confd/hmac.key", "The key: the bytes of the file, as they are."),
            ("/var/lib/gantry/confd/snapshot", "What is answered from."),
        ],
        [("SIGTERM, SIGINT", "End.")],
    ),
    "gantry-rapi": Daemon(
        "the REST interface of Gantry",
        [
            "Answers over HTTPS what Ganeti's clients of its remote API ask, version 2: every "
            "address, argument, body and answer. What it lists, the coordinator tells it when it "
            "changes; jobs are submitted to the coordinator. What Gantry cannot do is answered "
            "with 501.",
            "It need not run. deploy/install puts it there without enabling it: systemctl enable "
            "--now gantry-rapi starts it. It may run on every master candidate: where the "
            "coordinator is not, it answers 503 and names the master.",
            "Anybody may read what Ganeti lets anybody read, unless --require-authentication is "
            "given. To change anything takes a user with the option write, by HTTP basic "
            "authentication. A line of the file of users is NAME PASSWORD OPTIONS, where OPTIONS "
            "is read or write; the password is as it is, {cleartext}PASSWORD, or {HA1} and the "
            "MD5 sum of NAME:Ganeti Remote API:PASSWORD. Changes count at once, as do those of "
            "the certificate within seconds.",
            "Besides, OPTIONS may be operator (start, stop, move and export instances, cancel "
            "jobs), owner=TAG (see, start, stop, reboot and reinstall instances that have the "
            "tag), and expires=TIME. gantry add-rest-user has the cluster keep such lines for all "
            "its master candidates, with a token instead of a password, to be sent as "
            "Authorization: Bearer. With --client-ca, users whose "
            "password is {CERTIFICATE} log in by a certificate in their name.",
            "Lists that are read with bulk=1 tell what nodes said last; the header Age says how "
            "many seconds ago that was. The end of a job is told after what it did.",
            "/metrics has figures of the cluster for Prometheus, where the coordinator is; "
            "elsewhere it tells that it is not. There are figures of states and of nodes, none of "
            "single instances or jobs.",
        ],
        [
            ("/etc/default/gantry-rapi", "Options: GANTRY_RAPI_OPTIONS=…"),
            ("/etc/gantry/rapi-users", "Who may do what; for root and gantry-rapi to read."),
            ("/var/lib/gantry/rest-users/certificate.pem", "Key and certificate of the cluster."),
            ("/var/lib/gantry/rest-users/users", "The same, of the cluster; on candidates."),
            ("/var/lib/gantry/rapi/rapi.pem", "Key and certificate, made at the first start."),
            ("/var/log/gantry/rapi/rapi-access.log", "Each request, in the common log format."),
        ],
        [("SIGTERM, SIGINT", "End.")],
    ),
    "gantry-noded": Daemon(
        "the node daemon of Gantry",
        [
            "Runs on every node, as root. It makes disks, guests and taps when the master orders "
            "it, keeps a copy of the cluster's state if the node is a master candidate, and "
            "remembers which master it has promised to obey.",
            "A node of no cluster listens to whoever has its join token, and to nobody else. A "
            "node of a cluster listens to the master candidates, whose names and keys the master "
            "publishes, and to nobody else.",
            "It locks itself in memory, so as to answer when the system disk is gone. Guests "
            "are not touched when it ends, and are found again when it starts.",
        ],
        [
            ("/etc/default/gantry-noded", "Options: GANTRY_NODED_OPTIONS=…"),
            ("/etc/gantry/guests", "What root of this node allows guests to be given."),
            ("/var/lib/gantry/identity/", "Key, certificate and authority of a member."),
            ("/var/lib/gantry/mastership.json", "The newest epoch granted, and to whom."),
            ("/var/lib/gantry/roster.json", "To whom it listens: the master candidates."),
            ("/var/lib/gantry/revoked-keys", "Keys that open nothing any more, one a line."),
            ("/var/lib/gantry/state.sqlite", "The cluster's state, on master candidates."),
            ("/var/lib/gantry/join-token", "The token of a node of no cluster."),
            ("/var/lib/gantry/ssconf/", "What every node knows of its cluster."),
            ("/var/lib/gantry/confd/", "What gantry-confd answers from, on master candidates."),
            ("/var/lib/gantry/export/", "One directory an export, named after the instance."),
            ("/var/lib/gantry/images/", "Images that were fetched, by their SHA-256."),
            ("/run/gantry/instances/", "One directory a guest, named by its UUID."),
            (
                "/run/gantry/copies/",
                "One directory for each side of a copy.",
            ),
            ("/run/gantry/os/", "One directory for each script of an operating system."),
            ("/var/log/gantry/os/", "What those have said, the last 200 of them."),
            ("/run/gantry/noded.lock", "Held by the one gantry-noded of this node."),
            ("/var/log/gantry/noded.log", "The log; what it cannot take goes to /dev/console."),
        ],
        [("SIGTERM, SIGINT", "End; guests run on.")],
    ),
    "gantry-coordinator": Daemon(
        "the master daemon of Gantry",
        [
            "Runs on the master. It holds the cluster's state in memory, runs jobs, places "
            "instances, and gives orders to the nodes. It keeps nothing on disk: the state is "
            "stored by gantry-noded of each master candidate.",
            "When it starts it asks all nodes whether this one is the master, and ends with 11 "
            "if another one is. gnt-cluster master-failover makes this node the master.",
            "When it stops, or is killed, jobs stay as they are; the next coordinator goes on "
            "with them.",
        ],
        [
            (
                "/run/gantry/coordinator/luxi.sock",
                "Where commands reach it; who may use it is its mode.",
            ),
            ("/var/lib/gantry/identity/", "What it shows to the nodes; read only."),
            (
                "/var/log/gantry/coordinator.log",
                "What it says, where it was started by a command; else the journal has it.",
            ),
        ],
        [("SIGTERM, SIGINT", "End; jobs that run are gone on with by the next coordinator.")],
    ),
    "gantry-watcher": Daemon(
        "starts again what should run",
        [
            "Looks once: instances that are marked as up, do not run, and whose node answers, are "
            "started by a job each. Jobs that ended more than six hours ago are archived, and "
            "deleted after three weeks; gnt-cluster modify sets both times. gantry-watcher.timer "
            "has it look every half minute. It works on the master; on other nodes it ends at "
            "once, with 11.",
            "An instance is left alone that a job has to do with already, that runs on another "
            "node than it should, or whose node is offline or does not answer. What an operator "
            "stopped stays stopped; a guest that turned itself off is started again.",
            "An instance that does not stay up is tried five times, with pauses of 1, 4, 15 and 60 "
            "minutes between; after three hours that begins anew. It counts in the jobs that it "
            "submitted before, and keeps nothing itself: gnt-job archive of those makes it forget "
            "them.",
            "gnt-cluster watcher pause 1h lets it do nothing for an hour. Daemons are not its "
            "concern: systemd starts them again.",
        ],
        [("/run/gantry/coordinator/luxi.sock", "Where it reaches the coordinator.")],
        [("SIGTERM, SIGINT", "End; what it has ordered is done.")],
    ),
}
