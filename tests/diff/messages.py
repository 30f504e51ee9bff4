"""Random iallocator messages: clusters from roomy to overfull, requests of every type."""

from random import Random
from typing import Any

from common.model.template import DiskTemplate
from common.record import replace
from tests.unit.allocator.clusters import TEMPLATES, Taste, random_request, random_snapshot
from tests.unit.allocator.hail import question

Message = dict[str, Any]

KINDS = (
    "allocate", "relocate", "node-evacuate", "multi-allocate", "change-group",
    "allocate-secondary",
)  # fmt: skip
_SIZES = (3, 3, 4, 5, 6, 8, 10, 12, 16, 20)


def random_message(rng: Random, kind: str, *, nodes: int = 0) -> Message:
    """A message; ``nodes`` 0 for a random small number of them."""
    taste = replace(
        Taste.random(rng),
        nodes=nodes or rng.choice(_SIZES),
        groups=rng.choice((1, 1, 2, 3, 5)) if kind != "change-group" else rng.choice((2, 3)),
    )
    if kind != "allocate" and rng.random() < 0.7:
        taste = replace(taste, templates=(*TEMPLATES, DiskTemplate.GLUSTER), fill=0.25)
    if kind == "change-group" and rng.random() < 0.6:
        taste = replace(taste, sound=True, fill=0.2, templates=(DiskTemplate.DRBD,))
    snapshot = random_snapshot(rng, taste)
    message = question(snapshot, replace(random_request(rng, taste, snapshot), group=None))
    _vary_cluster(rng, message)
    message["request"] = _request(rng, kind, taste, message)
    return message


def random_words(rng: Random) -> list[str]:
    """Options of the command."""
    words = []
    if rng.random() < 0.3:
        words.append("--no-capacity-checks")
    if rng.random() < 0.1:
        words.append("--ignore-soft-errors")
    if rng.random() < 0.1:
        words.append("--static-kvm-node-memory=0")
    if rng.random() < 0.1:
        words.append("--ignore-dynu")
    if rng.random() < 0.1:
        words.append(f"--restrict-allocation-to=n0.x,n1.x,n{rng.randint(2, 9)}.x")
    return words


def _vary_cluster(rng: Random, message: Message) -> None:
    if rng.random() < 0.15:
        message["enabled_hypervisors"] = ["kvm", "xen-pvm"]
    if rng.random() < 0.05:
        for group in message["nodegroups"].values():
            group["alloc_policy"] = rng.choice(("unallocable", "last_resort"))
    if rng.random() < 0.15:
        _make_exclusive(rng, message, share=rng.choice((1.0, 1.0, 0.5)))
    if rng.random() < 0.05:
        for node in message["nodes"].values():
            for key in ("total_memory", "total_disk", "total_cpus"):
                node[key] = node[key] + 0.5


def _make_exclusive(rng: Random, message: Message, *, share: float) -> None:
    for node in message["nodes"].values():
        if rng.random() < share:
            node["ndparams"]["exclusive_storage"] = True
            node["total_spindles"] = rng.choice((4, 12, 24))
            node["free_spindles"] = rng.randint(0, node["total_spindles"])
    for instance in (*message["instances"].values(), message["request"]):
        if rng.random() < 0.95:
            for disk in instance["disks"]:
                disk["spindles"] = rng.choice((1, 1, 2))


def _request(rng: Random, kind: str, taste: Taste, message: Message) -> Message:
    names = list(message["instances"])
    new: Message = message["request"]
    groups = list(message["nodegroups"].values())
    if kind in {"allocate", "multi-allocate"} and rng.random() < 0.2:
        _ask_for_group(rng, message)
    if kind == "allocate":
        if rng.random() < 0.03:
            new["required_nodes"] = rng.choice((1, 2)) if new["disk_template"] != "drbd" else 2
        return new
    if kind == "multi-allocate":
        picture_rng = Random(rng.random())
        several = []
        for index in range(rng.randint(1, 6)):
            one = dict(new) if rng.random() < 0.5 else _other(picture_rng, taste)
            several.append(one | {"name": f"new{index}.x"})
        request: Message = {"type": kind, "instances": several}
        if "group_name" in new:
            request["group_name"] = new.pop("group_name")
        return request
    if not names:
        return new
    if kind == "relocate":
        name = rng.choice(names)
        homes = message["instances"][name]["nodes"]
        leaving = homes[-1:] if rng.random() < 0.95 else homes[:1]
        return {"type": kind, "name": name, "required_nodes": 1, "relocate_from": leaving}
    if kind == "node-evacuate":
        node = rng.choice(list(message["nodes"]))
        there = [name for name in names if node in message["instances"][name]["nodes"]]
        chosen = there if there and rng.random() < 0.6 else rng.sample(names, min(4, len(names)))
        mode = rng.choice(("primary-only", "secondary-only", "all", "all"))
        return {"type": kind, "instances": chosen, "evac_mode": mode}
    if kind == "change-group":
        chosen = rng.sample(names, min(rng.choice((1, 1, 2, 3)), len(names)))
        wanted = [rng.choice(groups)["name"]] if rng.random() < 0.4 else []
        return {"type": kind, "instances": chosen, "target_groups": wanted}
    return {"type": kind, "name": rng.choice(names)}


def _ask_for_group(rng: Random, message: Message) -> None:
    """Name a group, by its UUID now and then.

    hail mixes up instances then unless those of the group come first, so they do.
    """
    uuid = rng.choice(list(message["nodegroups"]))
    inside = {name for name, node in message["nodes"].items() if node["group"] == uuid}
    order = sorted(message["instances"].items(), key=lambda one: one[1]["nodes"][0] not in inside)
    message["instances"] = dict(order)
    name = message["nodegroups"][uuid]["name"]
    message["request"]["group_name"] = uuid if rng.random() < 0.1 else name


def _other(rng: Random, taste: Taste) -> Message:
    snapshot = random_snapshot(rng, replace(taste, nodes=1, fill=0.0))
    request: Message = question(snapshot, random_request(rng, taste, snapshot))["request"]
    return request
