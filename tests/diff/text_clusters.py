"""Random clusters in Ganeti's text format, for runs against Debian's tools."""

from random import Random

from common.record import Record

TEMPLATES = (
    "drbd", "drbd", "plain", "file", "sharedfile", "diskless", "rbd", "ext", "blockdev", "gluster",
)  # fmt: skip
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


def random_text(rng: Random, taste: Taste) -> str:  # noqa: C901 - one kind of chance after the other
    """One cluster."""
    groups = [f"group-{g}" for g in range(taste.groups)]
    policies = {
        name: rng.choice(("preferred", "preferred", "last_resort", "unallocable"))
        if name != "group-0" else "preferred"
        for name in groups
    }  # fmt: skip
    members: dict[str, list[str]] = {name: [] for name in groups}
    nodes: dict[str, dict[str, object]] = {}
    master = rng.randrange(taste.nodes)
    for index in range(taste.nodes):
        name = f"n{index}.x"
        group = groups[index % taste.groups]
        members[group].append(name)
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
        nodes[name] = {
            "group": group, "memory": memory, "own": 512 if taste.uniform else rng.randint(0, 900),
            "used": 0, "space": 0, "disk": disk, "tags": tags, "spindles_used": 0,
            "flag": "M" if index == master else "Y" if rng.random() < taste.offline else "N",
        }  # fmt: skip
    instances = []
    for index in range(int(taste.per_node * taste.nodes)):
        primary = rng.choice(list(nodes))
        group = str(nodes[primary]["group"])
        template = rng.choice(taste.templates)
        others = [n for n in members[group] if n != primary]
        if template == "drbd" and not others:
            template = "plain"
        memory = rng.choice((512, 1024, 1024, 2048)) if taste.uniform else rng.randint(100, 4000)
        disk = rng.choice((1024, 10240)) if taste.uniform else rng.randint(500, 30000)
        secondary = rng.choice(others) if template == "drbd" else ""
        if template == "drbd" and taste.groups > 1 and rng.random() < 0.03:
            secondary = rng.choice([n for n in nodes if n != primary])
        status = rng.choice(STATUSES) if rng.random() < taste.down else "running"
        forthcoming = rng.random() < taste.forthcoming
        spindles = rng.randint(1, 2)
        node = nodes[primary]
        if not taste.tight and int(str(node["used"])) + memory > int(str(node["memory"])) - 1500:
            continue
        uses = status in {"running", "ERROR_up", "ERROR_nodedown"} and not forthcoming
        node["used"] = int(str(node["used"])) + (memory if uses else 0)
        for home in (primary, secondary):
            if home and template in {"drbd", "plain"} and not forthcoming:
                nodes[home]["space"] = int(str(nodes[home]["space"])) + disk
                nodes[home]["spindles_used"] = int(str(nodes[home]["spindles_used"])) + spindles
        tags = []
        if taste.exclusion and rng.random() < 0.5:
            tags.append(f"service:{rng.randrange(4)}")
        if taste.locations and rng.random() < 0.3:
            tags.append(f"rack:{rng.randrange(3)}")
        vcpus = 1 if taste.uniform else rng.randint(1, 4)
        auto = "N" if rng.random() < taste.fixed else "Y"
        use = 1 if taste.uniform else rng.randint(1, 3)
        known = str(spindles) if taste.exclusive and rng.random() < 0.95 else "-"
        instances.append(
            f"i{index}.x|{memory}|{disk}|{vcpus}|{status}|{auto}|{primary}|{secondary}|{template}"
            f"|{','.join(tags)}|{use}|{known}|{'Y' if forthcoming else 'N'}"
        )
    node_lines = [_node_line(rng, taste, name, node) for name, node in nodes.items()]
    cluster_tags = []
    if taste.exclusion:
        cluster_tags.append("htools:iextags:service")
    if taste.locations:
        cluster_tags += ["htools:nlocation:rack", "htools:nlocation:power"]
        cluster_tags += ["htools:desiredlocation:rack"]
    if taste.migration:
        cluster_tags.append("htools:migration:cpu")
        if rng.random() < 0.5:
            cluster_tags.append("htools:allowmigration:cpu:a::cpu:b")
    group_lines = [f"{name}|uuid-{name}|{policies[name]}||" for name in groups]
    policy_lines = [_policy_line(rng, name) for name in ("", *groups)] if taste.policies else []
    sections = (group_lines, node_lines, instances, cluster_tags, policy_lines)
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _node_line(rng: Random, taste: Taste, name: str, node: dict[str, object]) -> str:
    def number(key: str) -> int:
        return int(str(node[key]))

    free = max(0, number("memory") - number("own") - number("used"))
    if taste.missing:
        free = max(0, free - rng.choice((0, 0, 300, 1000, -200)))
    disk = max(0, number("disk") - number("space"))
    cpus = 8 if taste.uniform else rng.choice((4, 8, 16))
    total = rng.randint(4, 20)
    spindles = total if taste.exclusive else 1 if taste.uniform else rng.randint(1, 3)
    speed = rng.choice((0.5, 1.0, 1.25)) if taste.speeds else 1.0
    tags = node["tags"]
    assert isinstance(tags, list)
    unknown = node["flag"] == "Y" and rng.random() < 0.5
    numbers = "?|?|?|?|?|?" if unknown else (
        f"{number('memory')}|{number('own')}|{free}|{number('disk')}|{disk}|{cpus}"
    )  # fmt: skip
    return (
        f"{name}|{numbers}|{node['flag']}|uuid-{node['group']}|{spindles}|{','.join(tags)}"
        f"|{'Y' if taste.exclusive else 'N'}|{max(0, total - number('spindles_used'))}"
        f"|{rng.choice((0, 1))}|{speed}"
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
