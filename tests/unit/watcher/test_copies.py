"""What nodes tell of the copies of mirrored disks is noted, and parted ones are connected again."""

from tests.unit.watcher.answering import Answering


def test_what_nodes_tell_of_copies_is_noted_once_a_group_and_parted_ones_are_connected() -> None:
    cluster = Answering()
    cluster.mirrors = [
        ["web1", "default", "parted", True, "up"],
        ["web2", "default", "whole", True, "up"],
        ["web3", "other", "parted", False, "down"],
    ]
    note, link, _ = cluster.hold()
    assert note.text.startswith("Group default: copies of mirrored disks fell behind")
    assert link.text == (
        "Instance web1: the copies of its disks are parted, and are connected again; job 41."
    )
    orders = [
        (op["OP_ID"], op.get("group_name", op.get("instance_name"))) for op in cluster.ordered
    ]
    assert orders == [("OP_GROUP_VERIFY_DISKS", "default"), ("OP_INSTANCE_ACTIVATE_DISKS", "web1")]


def test_copies_that_a_job_tends_already_are_left_to_it() -> None:
    cluster = Answering()
    cluster.mirrors = [["web1", "default", "parted", True, "up"]]
    cluster.jobs = [
        [[0, 0], None, "running", [{"OP_ID": "OP_GROUP_VERIFY_DISKS", "group_name": "default"}]],
        [[0, 0], [1, 0], "error", [{"OP_ID": "OP_X", "instance_name": "web1"}]],
    ]
    cluster.hold()
    assert cluster.ordered == []


def test_mirrors_are_let_be_while_the_queue_is_drained() -> None:
    cluster = Answering()
    cluster.drained = True
    cluster.mirrors = [["web1", "default", "parted", True, "up"]]
    cluster.hold()
    assert cluster.ordered == []
