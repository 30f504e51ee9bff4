"""Installed as a stranger would, three nodes joined by token: everything in order."""

from tests.lab.stage import Stage, said


def test_three_installed_nodes_form_a_clean_cluster(standing: Stage) -> None:
    names = standing.alpha.run("gnt-node list --no-headers -o name").split()
    assert names[:3] == ["alpha", "beta", "gamma"]
    assert "ERROR" not in standing.verify()


def test_every_unit_of_every_node_is_content(standing: Stage) -> None:
    for node in standing.nodes:
        assert not node.run("systemctl --failed --no-legend").strip()
        assert "memory locked" in node.run("systemctl status gantry-noded")


def test_each_node_has_its_volume_group_and_drbd(standing: Stage) -> None:
    for node in standing.nodes:
        assert node.run("vgs --noheadings -o vg_name").split() == ["gantry"]
        assert "version: 8.4" in said(node, "cat /proc/drbd")
