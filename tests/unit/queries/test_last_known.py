"""What silent nodes told before is shown apart, with its age, and stands for nothing."""

from typing import Any

from coordinator.queries.classic import query_objects
from coordinator.queries.query import query
from tests.support.clock import simulate
from tests.unit.queries.cluster import ALPHA, BETA, RecordedAsker, source, told_at

NO_DATA, UNAVAILABLE, OFFLINE = (2, None), (3, None), (4, None)


def ask(what: str, fields: str, condition: Any = None, asker: RecordedAsker | None = None) -> Any:
    """Ask 95 seconds after alpha and beta told what they knew; beta is silent now."""
    asked = source(asker or RecordedAsker(dead=[BETA]), told_at(-95, ALPHA, BETA))
    return simulate(query(what, fields.split(","), condition, asked))["data"]


def test_a_silent_node_has_its_last_values_and_their_age_beside_the_gaps() -> None:
    alpha, beta, gamma = ask("node", "name,mfree,last_known")
    assert alpha == [(0, "alpha"), (0, 2048), UNAVAILABLE]
    assert beta[:2] == [(0, "beta"), NO_DATA]
    assert gamma == [(0, "gamma"), OFFLINE, OFFLINE]
    status, told = beta[2]
    assert (status, told["node"], told["why"], told["age"]) == (0, "beta", "gone", 95.0)
    values = told["values"]
    assert (values["mfree"], values["dtotal"], values["bootid"]) == (2048, 5248, "b")
    assert values["spfree"] == 0  # its storage is not exclusive


def test_instances_of_a_silent_node_are_told_of_as_they_were() -> None:
    db1, mail, web1, web2 = ask("instance", "status,oper_state,last_known")
    assert db1 == [(0, "running"), (0, True), UNAVAILABLE]
    assert mail == [(0, "ERROR_nodeoffline"), OFFLINE, OFFLINE]
    assert web1[:2] == web2[:2] == [(0, "ERROR_nodedown"), NO_DATA]
    told = web1[2][1]
    assert (told["node"], told["age"]) == ("beta", 95.0)
    assert told["values"] == {
        "guest_state": "running", "oper_ram": 256, "oper_state": True, "oper_vcpus": 2,
    }  # fmt: skip
    assert web2[2][1]["values"] == {"guest_state": "absent", "oper_state": False}


def test_a_master_that_has_heard_nothing_of_a_node_says_so() -> None:
    asked = source(RecordedAsker(dead=[BETA]), told_at(-95, ALPHA))
    condition = ["==", "name", "beta"]
    (row,) = simulate(query("node", ["mfree", "last_known"], condition, asked))["data"]
    assert row[1] == (0, {"node": "beta", "why": "gone", "age": None, "values": {}})


def test_no_filter_and_no_older_query_takes_an_old_value_for_a_new_one() -> None:
    assert ask("instance", "name", ["?", "oper_state"]) == [[(0, "db1.example.com")]]
    assert ask("instance", "name", ["==", "guest_state", "running"]) == [[(0, "db1.example.com")]]
    asked = source(RecordedAsker(dead=[BETA]), told_at(-95, ALPHA, BETA))
    assert simulate(query_objects("node", ["beta"], ["mfree"], asked)) == [[None]]
