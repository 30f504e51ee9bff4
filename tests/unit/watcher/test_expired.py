"""What was reserved until now is forgotten."""

from coordinator.operations.base import read_operation
from coordinator.operations.instance.remove import RemoveInstance
from tests.unit.watcher.answering import NOW, Answering


def test_what_was_reserved_until_now_is_forgotten_once_and_nothing_else() -> None:
    cluster = Answering()
    cluster.reserved = [["u-1", "web1", NOW], ["u-2", "web2", NOW + 1], ["u-3", "web3", None]]
    told, _ = cluster.hold()
    assert told.text == "Instance web1: its reservation has expired; job 40 forgets it."
    (ordered,) = cluster.ordered
    assert (ordered["OP_ID"], ordered["instance_name"]) == ("OP_INSTANCE_REMOVE", "u-1")
    order = read_operation(ordered)
    assert isinstance(order, RemoveInstance)
    assert order.if_expired  # so nothing happens to what is made meanwhile
    cluster.jobs = [[[int(NOW), 0], None, "queued", [ordered]]]
    assert len(cluster.hold()) == 1
    assert len(cluster.ordered) == 1


def test_a_refused_removal_of_what_has_expired_is_told() -> None:
    cluster = Answering()
    cluster.reserved, cluster.refuses = [["u-1", "web1", NOW]], "The queue is full."
    told, _ = cluster.hold()
    assert (
        told.text == "Instance web1: its reservation has expired, and it stays: The queue is full."
    )
