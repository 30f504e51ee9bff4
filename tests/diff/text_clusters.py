"""Random clusters in Ganeti's text format, for runs against Debian's tools."""

from dataclasses import dataclass
from random import Random

from common.record import Record

TEMPLATES = (
    "drbd", "drbd", "plain", "file", "sharedfile", "diskless", "rbd", "ext", "blockdev", "gluster",
)  # fmt: skip
POLICIES = ("preferred", "preferred", "last_resort", "unallocable")
STATUSES = ("ADMIN_down", "ADMIN_offline", "ERROR_up", "ERROR_down", "ERROR_nodedown", "USER_down")


class Taste(Record):
    """What a random cluster is like; shares are between 0 and 1."""

    nodes: int
    groups: int = 1
    per_node: float = 3.0
    templates: tuple[str, ...] = ("drbd",)
    uniform: bool = False
    offline: float = 0.0
    down: float = 0.0
    forthcoming: float = 0.0
    fixed: float = 0.0
    exclusion: bool = False
    locations: bool = False
    migration: bool = False
    exclusive: bool = False
    speeds: bool = False
    policies: bool = False
    tight: bool = False
    missing: bool = False

    @classmethod
    def random(cls, rng: Random, most_nodes: int = 16) -> "Taste":
        return cls(
            nodes=rng.randint(2, most_nodes),
            groups=rng.choice((1, 1, 1, 2, 3)),
            per_node=rng.choice((0.5, 1.5, 3, 5)),
            templates=rng.choice((("drbd",), ("drbd",), ("drbd", "plain"), ("sharedfile", "rbd"),
                                  TEMPLATES)),
            uniform=rng.random() < 0.35,
            offline=rng.choice((0, 0, 0.1, 0.25)),
            down=rng.choice((0, 0.1, 0.4)),
            forthcoming=rng.choice((0, 0, 0.15)),
            fixed=rng.choice((0, 0.15)),
            exclusion=rng.random() < 0.3,
            locations=rng.random() < 0.3,
            migration=rng.random() < 0.2,
            exclusive=rng.random() < 0.12,
            speeds=rng.random() < 0.2,
            policies=rng.random() < 0.25,
            tight=rng.random() < 0.3,
            missing=rng.random() < 0.3,
        )  # fmt: skip


@dataclass
class _Node:
    """One node: its memory and disk in MiB, and what instances have of them."""

    group: str
    memory: int
    disk: int
    tags: list[str]
    own: int  # memory
    flag: str
    used: int = 0  # memory
    space: int = 0
    spindles_used: int = 0


def random_text(rng: Random, taste: Taste) -> str:
    """One cluster."""
    groups = [f"group-{g}" for g in range(taste.groups)]
    policies = {name: rng.choice(POLICIES) if name != "group-0" else "preferred" for name in groups}
    master = rng.randrange(taste.nodes)
    nodes = {
        f"n{index}.x": _node(rng, taste, groups[index % taste.groups], is_master=index == master)
        for index in range(taste.nodes)
    }
    instances = [_instance(rng, taste, nodes) for _ in range(int(taste.per_node * taste.nodes))]
    node_lines = [_node_line(rng, taste, name, node) for name, node in nodes.items()]
    cluster_tags = _cluster_tags(rng, taste)
    group_lines = [f"{name}|uuid-{name}|{policies[name]}||" for name in groups]
    policy_lines = [_policy_line(rng, name) for name in ("", *groups)] if taste.policies else []
    instance_lines = [f"i{index}.x|{line}" for index, line in enumerate(instances) if line]
    sections = (group_lines, node_lines, instance_lines, cluster_tags, policy_lines)
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _node(rng: Random, taste: Taste, group: str, *, is_master: bool) -> _Node:
    memory = 16384 if taste.uniform else rng.choice((8192, 16384, 24000, 32768))
    disk = 300000 if taste.uniform else rng.choice((200000, 300000, 500000))
    tags = []
    if taste.locations:
        tags.append(f"rack:{rng.randrange(3)}")
        if rng.random() < 0.4:
            tags.append(f"power:{rng.randrange(2)}")
    if taste.migration and rng.random() < 0.6:
        tags.append(f"cpu:{rng.choice('ab')}")
    if rng.random() < 0.2:
        tags.append("htools:standby:auto")
    own = 512 if taste.uniform else rng.randint(0, 900)
    flag = "M" if is_master else "Y" if rng.random() < taste.offline else "N"
    return _Node(group, memory, disk, tags, own, flag)


def _instance(rng: Random, taste: Taste, nodes: dict[str, _Node]) -> str:
    """Put an instance on nodes; return its line but for its name, or nothing if they are full."""
    primary = rng.choice(list(nodes))
    node = nodes[primary]
    template = rng.choice(taste.templates)
    others = [name for name in nodes if name != primary and nodes[name].group == node.group]
    if template == "drbd" and not others:
        template = "plain"
    memory = rng.choice((512, 1024, 1024, 2048)) if taste.uniform else rng.randint(100, 4000)
    disk = rng.choice((1024, 10240)) if taste.uniform else rng.randint(500, 30000)
    secondary = rng.choice(others) if template == "drbd" else ""
    if template == "drbd" and taste.groups > 1 and rng.random() < 0.03:
        secondary = rng.choice([name for name in nodes if name != primary])
    status = rng.choice(STATUSES) if rng.random() < taste.down else "running"
    forthcoming = rng.random() < taste.forthcoming
    spindles = rng.randint(1, 2)
    if not taste.tight and node.used + memory > node.memory - 1500:
        return ""
    if status in {"running", "ERROR_up", "ERROR_nodedown"} and not forthcoming:
        node.used += memory
    for home in filter(None, (primary, secondary)):
        if template in {"drbd", "plain"} and not forthcoming:
            nodes[home].space += disk
            nodes[home].spindles_used += spindles
    tags = []
    if taste.exclusion and rng.random() < 0.5:
        tags.append(f"service:{rng.randrange(4)}")
    if taste.locations and rng.random() < 0.3:
        tags.append(f"rack:{rng.randrange(3)}")
    vcpus = 1 if taste.uniform else rng.randint(1, 4)
    auto = "N" if rng.random() < taste.fixed else "Y"
    use = 1 if taste.uniform else rng.randint(1, 3)
    known = str(spindles) if taste.exclusive and rng.random() < 0.95 else "-"
    return (
        f"{memory}|{disk}|{vcpus}|{status}|{auto}|{primary}|{secondary}|{template}"
        f"|{','.join(tags)}|{use}|{known}|{'Y' if forthcoming else 'N'}"
    )


def _cluster_tags(rng: Random, taste: Taste) -> list[str]:
    tags = []
    if taste.exclusion:
        tags.append("htools:iextags:service")
    if taste.locations:
        tags += ["htools:nlocation:rack", "htools:nlocation:power", "htools:desiredlocation:rack"]
    if taste.migration:
        tags.append("htools:migration:cpu")
        if rng.random() < 0.5:
            tags.append("htools:allowmigration:cpu:a::cpu:b")
    return tags


def _node_line(rng: Random, taste: Taste, name: str, node: _Node) -> str:
    free = max(0, node.memory - node.own - node.used)
    if taste.missing:
        free = max(0, free - rng.choice((0, 0, 300, 1000, -200)))
    disk = max(0, node.disk - node.space)
    cpus = 8 if taste.uniform else rng.choice((4, 8, 16))
    total = rng.randint(4, 20)
    spindles = total if taste.exclusive else 1 if taste.uniform else rng.randint(1, 3)
    speed = rng.choice((0.5, 1.0, 1.25)) if taste.speeds else 1.0
    is_silent = node.flag == "Y" and rng.random() < 0.5
    known = f"{node.memory}|{node.own}|{free}|{node.disk}|{disk}|{cpus}"
    return (
        f"{name}|{'?|?|?|?|?|?' if is_silent else known}|{node.flag}|uuid-{node.group}|{spindles}"
        f"|{','.join(node.tags)}|{'Y' if taste.exclusive else 'N'}"
        f"|{max(0, total - node.spindles_used)}|{rng.choice((0, 1))}|{speed}"
    )


def _policy_line(rng: Random, owner: str) -> str:
    small = f"{rng.choice((64, 128, 200))},1,500,1,1,1"
    large = (
        f"{rng.choice((1000, 4096, 32768))},{rng.choice((2, 4, 8))},{rng.choice((20000, 300000))}"
    )
    large += f",{rng.choice((1, 4))},8,{rng.choice((1, 12))}"
    templates = rng.choice(("drbd,plain,sharedfile,rbd", "plain,drbd", "sharedfile,drbd,plain"))
    return (
        f"{owner}|{rng.choice((128, 500))},1,1024,1,1,1|{small};{large}|{templates}"
        f"|{rng.choice((1.0, 2.0, 4.0))}|{rng.choice((3.0, 32.0))}"
    )
