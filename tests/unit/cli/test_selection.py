"""Commands about many instances: which they choose, what they ask, whose lines are whose."""

import io

import pytest
from msgspec.structs import replace

from common.model.group import Group
from common.model.instance import Instance, Reservation
from common.names import GroupId, GroupName
from coordinator.operations.network.connect import ConnectNetwork
from coordinator.operations.network.disconnect import DisconnectNetwork
from coordinator.state.rows import Put
from coordinator.state.state import state_of
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator
from tests.unit.queries.cluster import STATE, source

EVERY = ["db1.example.com", "mail", "web1.example.com", "web2.example.com"]


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("--all", EVERY),
        ("mail", ["mail"]),
        ("web2.example.com mail web2.example.com", ["web2.example.com", "mail"]),
        ("web*", EVERY[2:]),
        ("mail web* db?", [EVERY[1], *EVERY[2:], EVERY[0]]),
        ("[dm]*", EVERY[:2]),
        ("--primary beta", EVERY[2:]),
        ("--node beta gamma", EVERY[1:]),
        ("--node [bg]*", EVERY[1:]),
        ("--tags db nothing", EVERY[:1]),
    ],
)
def test_instances_are_chosen(
    run: Run, coordinator: ScriptedCoordinator, words: str, chosen: list[str]
) -> None:
    coordinator.script_job()
    for command in ("startup", "shutdown", "reboot", "remove -f", "migrate -f", "failover -f"):
        coordinator.submitted.clear()
        assert run(f"gnt-instance {command} --submit --force-multiple {words}").code == 0
        assert [job[0]["instance_name"] for job in coordinator.submitted] == chosen


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("zz*", "No instance fits “zz*”."),
        ("--tags nothing", "No instance is chosen by --tags nothing."),
        ("--secondary alpha", "No instance is chosen by --secondary alpha."),
        ("--node-tags rack1", "No instance is chosen by --node-tags rack1."),
        ("--primary alhpa", "There is no node “alhpa” in this cluster. Did you mean alpha?"),
        ("--primary z*", "No node fits “z*”."),
    ],
)
def test_an_empty_choice_is_told(
    run: Run, coordinator: ScriptedCoordinator, words: str, told: str
) -> None:
    assert run(f"gnt-instance startup {words}") == (3, "", f"Failure: {told}\n")
    assert coordinator.submitted == []


def _reserve(coordinator: ScriptedCoordinator, *names: str) -> None:
    """Have some instances be only reserved."""
    objects = [
        replace(each, reservation=Reservation())
        if isinstance(each, Instance) and each.name in names
        else each
        for each in STATE.items()
    ]
    coordinator.source = source(state=state_of(objects, STATE.stamp))


def test_what_is_only_reserved_is_chosen_where_that_can_be_done_to_it(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job()
    _reserve(coordinator, "web1.example.com", "mail")
    made, options = [EVERY[0], EVERY[3]], "--submit --force-multiple"
    for command, all_of_them, webs in (
        ("startup", made, made[1:]),
        ("shutdown", made, made[1:]),
        ("reboot", made, made[1:]),
        ("migrate -f", made, made[1:]),
        ("failover -f", EVERY, EVERY[2:]),
        ("remove -f", EVERY, EVERY[2:]),
    ):
        for words, chosen in (("--all", all_of_them), ("web*", webs), ("mail", ["mail"])):
            coordinator.submitted.clear()
            assert run(f"gnt-instance {command} {options} {words}").code == 0
            assert [job[0]["instance_name"] for job in coordinator.submitted] == chosen, command
    told = run("gnt-instance startup --force-multiple mai*")
    assert (told.code, told.err) == (3, "Failure: All that is chosen by “mai*” is only reserved.\n")


@pytest.mark.parametrize(
    ("words", "chosen"),
    [("beta gamma", ["beta", "gamma"]), ("[bg]*", ["beta", "gamma"]), ("gamma", ["gamma"])],
)
def test_nodes_are_chosen(
    run: Run, coordinator: ScriptedCoordinator, words: str, chosen: list[str]
) -> None:
    coordinator.script_job()
    assert run(f"gnt-node modify -D yes --submit --force-multiple {words}").code == 0
    given = [(job[0]["node_name"], job[0]["drained"]) for job in coordinator.submitted]
    assert given == [(name, True) for name in chosen]


@pytest.mark.parametrize(
    ("words", "groups"),
    [("lan", ["attic", "default"]), ("lan attic", ["attic"]),
     ("lan default attic default", ["default", "attic"])],
)  # fmt: skip
def test_a_network_is_connected_to_the_groups_that_are_named_or_to_all(
    run: Run, coordinator: ScriptedCoordinator, words: str, groups: list[str]
) -> None:
    coordinator.script_job()
    attic = Group(uuid=GroupId("00000000-0000-4000-8000-00000000000b"), name=GroupName("attic"))
    coordinator.source = source(state=STATE.apply([Put(attic)]))
    for command in ("connect --link br7", "disconnect"):
        coordinator.submitted.clear()
        assert run(f"gnt-network {command} --submit {words}").code == 0
        jobs = [(job[0]["network_name"], job[0]["group_name"]) for job in coordinator.submitted]
        assert jobs == [("lan", group) for group in groups]
    coordinator.submitted.clear()
    assert "no group “atic”" in run("gnt-network disconnect --submit lan atic").err
    assert coordinator.submitted == []


def test_that_all_groups_are_meant_where_none_is_named_is_told_of_the_command_alone(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, operation in (("connect", ConnectNetwork), ("disconnect", DisconnectNetwork)):
        with pytest.raises(SystemExit, match="0"):
            run(f"gnt-network {command} --help")
        assert "name of the group; none: all of them" in capsys.readouterr().out
        assert operation.parameters()["group_name"].help == "name of the group"


def test_nodes_that_nobody_named_are_asked_about(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job()
    ran = run("gnt-node modify -D yes [bg]*")
    assert (ran.code, coordinator.submitted) == (13, [])
    assert "Change beta and gamma?" in ran.err
    ran = run("gnt-node modify -D yes zz*")
    assert (ran.code, ran.err) == (3, "Failure: No node fits “zz*”.\n")


def test_only_what_nobody_named_is_asked_about(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job()
    ran = run("gnt-instance shutdown web*")
    assert ran.code == 13
    assert "Stop web1.example.com and web2.example.com?" in ran.err
    assert coordinator.submitted == []
    assert run("gnt-instance shutdown mail db1").code == 0
    assert run("gnt-instance shutdown mai*").code == 0
    assert run("gnt-instance shutdown --dry-run web*").code == 0
    assert run("gnt-instance shutdown --force web*").code == 13  # that is the guest's force


@pytest.mark.parametrize("words", ["mail mial db1", "mial mail", "mail mial mai*"])
def test_one_wrong_name_among_several_keeps_anything_from_being_done(
    run: Run, coordinator: ScriptedCoordinator, words: str
) -> None:
    ran = run(f"gnt-instance remove --force {words}")
    assert (ran.code, coordinator.submitted) == (3, [])
    assert "There is no instance “mial”" in ran.err


def test_one_question_is_asked_about_all(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    coordinator.script_job()
    monkeypatch.setattr("sys.stdin", Terminal("yes\n"))
    ran = run("gnt-instance remove --all")
    assert ran.code == 0
    assert (
        ran.err
        == f"Delete {', '.join(EVERY[:3])} and {EVERY[3]}, with all the data on the disks? [y/N] "
    )
    assert len(coordinator.submitted) == 4


def test_lines_of_several_jobs_say_whose_they_are(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    news = [[["running"], [[1, [0, 5], "message", "* start"]]], [["success"], []]]
    ill = {"code": "conflict", "message": "It is ill.", "detail": {}}
    coordinator.script_job(*news, *news, ends="error", failure=ill)
    ran = run("gnt-instance startup mail db1")
    assert ran.out.splitlines() == [
        "mail: Thu Jan  1 00:00:00 1970 * start",
        "db1.example.com: Thu Jan  1 00:00:00 1970 * start",
    ]  # fmt: skip
    assert ran.err == "Failure: mail: It is ill.\nFailure: db1.example.com: It is ill.\n"
    coordinator.script_job(news[0])
    assert run("gnt-instance startup mail").out == "Thu Jan  1 00:00:00 1970 * start\n"
