"""beta is silent: lists show what it told three hours ago, marked, and say so once below."""

import json
import time

import pytest

from coordinator.cli.last_known import (
    LastKnown,
    explanations,
    read_last_known,
)
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator
from tests.unit.queries.cluster import BETA, RecordedAsker, source, told_at

THREE_HOURS_S = 10_800
INSTANCES = """\
Instance         Hypervisor OS Primary_node Status            Memory
db1.example.com  kvm           alpha        running             256M
mail             kvm           gamma        ERROR_nodeoffline      *
web1.example.com kvm           beta         ERROR_nodedown     256M?
web2.example.com kvm           beta         ERROR_nodedown         ?
"""
NODES = """\
Node  DTotal DFree MTotal MNode MFree Pinst Sinst
alpha   5.2G  5.0G   4.0G  512M  2.0G     1     0
beta   5.1G? 5.0G?  4.0G? 512M? 2.0G?     2     0
gamma      *     *      *     *     *     1     0
"""


@pytest.fixture(autouse=True)
def _silent(coordinator: ScriptedCoordinator) -> None:
    heard = told_at(time.monotonic() - THREE_HOURS_S, BETA)
    coordinator.source = source(RecordedAsker(dead=[BETA]), heard)


@pytest.mark.parametrize(
    ("line", "out"),
    [
        ("gnt-instance list", INSTANCES),
        ("gnt-node list", NODES),
        ("gnt-node list --no-headers -v -o name,mfree", "alpha      2.0G\n"
                                                        "beta      2.0G?\n"
                                                        "gamma (offline)\n"),
        ("gnt-node list --no-headers --separator=: -o name,mfree beta", "beta:2048?\n"),
        ("gnt-node list --no-headers -o name,mfree,last_known", "alpha  2.0G -\n"
                                                                "beta  2.0G? 3 hours\n"
                                                                "gamma     * *\n"),
        ("gnt-instance list --no-headers -o name,oper_state web2.example.com",
         "web2.example.com N?\n"),
    ],
)  # fmt: skip
def test_old_values_are_marked_and_their_age_is_told(run: Run, line: str, out: str) -> None:
    ran = run(line)
    assert (ran.code, ran.out) == (0, out)
    assert ran.err == "gone What has a ? it told 3 hours ago.\n"


def test_programs_find_old_values_apart_from_new_ones(run: Run) -> None:
    ran = run("gnt-node list --json -o name,mfree")
    alpha, beta, _ = json.loads(ran.out)
    assert alpha == {"name": "alpha", "mfree": 2048}
    assert (beta["name"], beta["mfree"]) == ("beta", None)
    known = beta["last_known"]
    assert (known["node"], known["why"], known["values"]["mfree"]) == ("beta", "gone", 2048)
    assert known["age"] >= THREE_HOURS_S
    assert ran.err == ""


def test_nobody_is_asked_for_the_sake_of_old_values(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    ran = run("gnt-node list --no-headers -o name,role")
    assert ran == (0, "alpha M\nbeta  C\ngamma O\n", "")
    assert isinstance(coordinator.source.asker, RecordedAsker)
    assert coordinator.source.asker.asked == []


def test_a_node_of_which_nothing_is_known_is_named(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.source = source(RecordedAsker(dead=[BETA]))
    ran = run("gnt-node list --no-headers -o name,mfree beta")
    assert ran.out == "beta ?\n"
    assert ran.err == "gone It told this master nothing before.\n"


def test_info_tells_what_was_known(run: Run) -> None:
    told = run("gnt-node info beta").out
    assert "No answer: gone What has a ? it told 3 hours ago.\n" in told
    assert "memory:\n  total: 4.0G?\n  node: 512M?\n  free: 2.0G?\n" in told
    told = run("gnt-instance info web1.example.com").out
    assert (
        "configured to be up, actual state is ERROR_nodedown, its process is running?, "
        "with 256M? and 2? vCPUs" in told
    )
    assert "No answer" not in run("gnt-node info alpha gamma").out


def test_a_coordinator_that_does_not_know_of_this_is_understood(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    def older(what: str, fields: list[str], _: object) -> object:
        known = [{"name": name, "title": name, "kind": "text", "doc": ""} for name in fields[:-1]]
        unknown = {"name": fields[-1], "title": "", "kind": "unknown", "doc": ""}
        return {"fields": [*known, unknown], "data": [[[0, "a"], [2, None], [1, None]]]}

    coordinator.methods["Query"] = older
    assert run("gnt-node list --no-headers -o name,mfree") == (0, "a ?\n", "")


@pytest.mark.parametrize("value", [None, 7, [], {}, {"node": "a", "why": "b", "age": "c"}])
def test_anything_else_is_not_taken_for_old_values(value: object) -> None:
    assert read_last_known(value) is None


def test_many_silent_nodes_are_named_once_each_and_counted_in_the_end() -> None:
    known = [LastKnown(f"n{number}", f"{number}.", None, {}) for number in range(13)]
    told = list(explanations([*known, None, *known]))
    assert len(told) == 11
    assert told[-1] == "3 other nodes do not answer, either."
