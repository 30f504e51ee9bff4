"""What a removed instance leaves on a node that was away is named, and taken away on request."""

import re

import pytest

from deploy.uml import network
from deploy.uml.node import Node
from tests.lab.chaos.inspection import look
from tests.lab.leftovers import leftovers
from tests.lab.mirrored import part
from tests.lab.stage import Stage, answers, on_request, said, until

NAME = "gone"
ADD = (
    "gnt-instance add -t drbd -n beta:gamma --disk 0:size=8M --no-start --no-nics "
    f"-B memory=128,vcpus=1 {NAME}"
)
REMOVE = f"gnt-instance remove --force {NAME}"
TEXT = re.compile(r"\s+")


@on_request
@pytest.mark.parametrize(
    ("name", "loses_power"), [("beta", True), ("gamma", False)], ids=["primary", "secondary"]
)
def test_what_was_left_on_a_node_that_was_away_is_named_and_taken_away(
    stage: Stage, name: str, loses_power: bool
) -> None:
    node = stage.lab.node(name)
    assert "exit 0" in said(stage.alpha, ADD)
    assert "exit 0" in said(stage.alpha, f"gnt-instance activate-disks --wait-for-sync {NAME}")
    ((minor, *_),) = look(node).mirrors
    volumes = look(node).volumes
    assert len(volumes) == 2
    try:
        go_away(stage, node, loses_power=loses_power)
        assert "exit 0" not in said(stage.alpha, REMOVE)  # unless it is told what to do without
        assert NAME in stage.alpha.run("gnt-instance list -o name")
        assert "exit 0" in said(stage.alpha, f"{REMOVE} --ignore-failures", seconds=400)
        assert NAME not in stage.alpha.run("gnt-instance list -o name")
    finally:
        come_back(stage, node)

    told = TEXT.sub(" ", stage.verify())
    for volume in volumes:
        assert f"the volume {volume} is left over of the disk" in told
    assert f"“gnt-node remove-leftovers {name}” deletes it" in told
    # A device is the kernel's, and no kernel outlives its power.
    assert (f"/dev/drbd{minor} (" in told) is not loses_power
    assert list(leftovers(stage)) == [name]

    assert "exit 0" in said(stage.alpha, f"gnt-node remove-leftovers --force {name}")
    assert not leftovers(stage)
    assert not look(node).mirrors
    told = stage.verify()
    assert "ERROR" not in told
    assert "WARNING" not in told


def go_away(stage: Stage, node: Node, *, loses_power: bool) -> None:
    """Have a node lose its power, or be unreachable for both others while it goes on."""
    if loses_power:
        node.power_off()
        return
    for other in stage.nodes:
        if other is not node:
            part(stage, other, node)


def come_back(stage: Stage, node: Node) -> None:
    network.heal(stage.lab.place)
    stage.power_on()
    until(lambda: answers(node, "systemctl is-active gantry-noded"), "the node's daemon")
    heard = f"gnt-node list --no-headers -o mfree {node.name} | grep --quiet '[0-9]'"
    until(lambda: answers(stage.alpha, heard), f"{node.name} to be heard of")
