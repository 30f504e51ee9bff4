import json

import pytest

from common.errors import NodeFailure
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

pytestmark = pytest.mark.usefixtures("coordinator")

INSTANCES = """\
Instance         Hypervisor OS Primary_node Status            Memory
db1.example.com  kvm           alpha        running             256M
mail             kvm           gamma        ERROR_nodeoffline      *
web1.example.com kvm           beta         running             256M
web2.example.com kvm           beta         ADMIN_down             -
"""
NODES = """\
Node  DTotal DFree MTotal MNode MFree Pinst Sinst
alpha   5.2G  5.0G   4.0G  512M  2.0G     1     0
beta    5.1G  5.0G   4.0G  512M  2.0G     2     0
gamma      *     *      *     *     *     1     0
"""
JOBS = """\
ID Status Summary
 2 error  NODE_ADD(delta)
 3 queued TEST_DELAY(9)
"""
LOCKS = f"""\
Name                      Mode      Owner Pending
instance/web1.example.com exclusive job 2 shared:job 3
node/beta                 -         -     {""}
"""


@pytest.mark.parametrize(
    ("line", "out"),
    [
        ("gnt-instance list", INSTANCES),
        ("gantry instance list", INSTANCES),
        ("gnt-node list", NODES),
        ("gnt-job list", JOBS),
        ("gnt-debug locks", LOCKS),
        ("gnt-instance list --no-headers -o name,status mail", "mail ERROR_nodeoffline\n"),
        ("gnt-instance list --no-headers -v -o name,oper_ram mail", "mail (offline)\n"),
        ("gnt-instance list --no-headers -o name,oper_ram web2*", "web2.example.com -\n"),
        ("gnt-instance list -o name,disk.sizes --separator=: db*", "Instance:Disk_sizes\n"
                                                                   "db1.example.com:64,128\n"),
        ("gnt-instance list --no-headers -o name web1", "web1.example.com\n"),
        ("gnt-instance list --no-headers -o name web2* db1", "db1.example.com\n"
                                                            "web2.example.com\n"),
        ("gnt-instance list --no-headers -o name zz*", ""),
        ("gnt-job list --no-headers -o id --error 2 3", "2\n"),
        ("gnt-node list --separator=| --no-headers -o name,mfree,dtotal beta", "beta|2048|5248\n"),
        ("gnt-node list --units=g --no-headers -o mfree,name beta", "2.0 beta\n"),
        ("gnt-node list --no-headers -o +role beta",
         "beta 5.1G 5.0G 4.0G 512M 2.0G 2 0 C\n"),
        ("gnt-node list --no-headers -o name,offline,ctime gamma",
         "gamma Y 2001-09-09 01:46:40\n"),
        ("gnt-node list -F --no-headers -o name role~==~'M'", "alpha\n"),
        ("gnt-node list --no-headers -o name not~offline~and~not~master", "beta\n"),
        ("gnt-job list --error --no-headers", "2 error NODE_ADD(delta)\n"),
        ("gnt-job list --pending --running -o id --no-headers", "3\n"),
        ("gnt-job list --pending", "ID Status Summary       Waits_for\n"
                                   " 3 queued TEST_DELAY(9) a place\n"),
        ("gnt-job list --archived --no-headers -o received_ts", "1970-01-01 00:00:10.250000\n"),
        ("gnt-job list --no-headers -o id,start_ts 3", "3 -\n"),
        ("gnt-job list --finished --pending --no-headers -o id status~==~'queued'", "3\n"),
    ],
)  # fmt: skip
def test_tables(run: Run, line: str, out: str) -> None:
    assert run(line) == (0, out, "")


def test_locks_are_listed_again_and_again_until_somebody_interrupts(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", sleep)
    assert run("gnt-debug locks --interval 2") == (
        130,
        f"{LOCKS}\n{LOCKS}\n{LOCKS}",
        "Interrupted.\n",
    )
    assert slept == [2, 2, 2]
    slept.clear()
    assert run("gnt-debug locks --interval 2 -o name,nope").code == 14
    assert slept == []
    for odd in ("0", "-1", "nan", "inf", "soon", "1e9"):
        told = run(f"gnt-debug locks --interval={odd}")
        assert (told.code, told.out) == (2, "")
        assert f"“{odd}” is no number of seconds from 0.1 to " in told.err


def test_json_is_for_programs(run: Run) -> None:
    ran = run("gnt-instance list --json -o name,oper_ram,tags,admin_up")
    assert json.loads(ran.out)[:2] == [
        {"name": "db1.example.com", "oper_ram": 256, "tags": ["db"], "admin_up": True},
        {"name": "mail", "oper_ram": None, "tags": [], "admin_up": True},
    ]


def test_the_environment_changes_the_usual_fields(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GNT_INSTANCE_LIST", "name,pnode")
    assert run("gnt-instance list --no-headers mail").out == "mail gamma\n"
    assert run("gnt-instance list --no-headers -o +os mail").out == "mail gamma \n"


def test_an_unknown_field_is_shown_and_refused(run: Run) -> None:
    ran = run("gnt-node list --no-headers -o name,nope beta")
    assert ran.code == 14
    assert ran.out == "beta ??\n"
    assert "Unknown fields: nope" in ran.err


def test_fields_are_listed(run: Run) -> None:
    ran = run("gnt-node list-fields mfree name")
    assert ran.out == (
        "Name  Type         Title Description\n"
        "mfree Storage size MFree Memory available for instance allocations\n"
        "name  Text         Node  Node name\n"
    )
    assert json.loads(run("gnt-job list-fields --json id").out)[0]["kind"] == "number"
    assert run("gnt-node list-fields nope").code == 14
    assert len(run("gnt-instance list-fields --no-headers").out.splitlines()) > 150


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("gnt-instance list web9", 3, "There is no instance “web9”"),
        ("gnt-job list 77", 3, "There is no job 77"),
        ("gnt-job list 3 77", 3, "There is no job 77"),
        ("gnt-job list --running 77", 3, "There is no job 77"),
        ("gnt-job list --archived 77", 3, "There is no job 77"),
        ("gnt-instance list web1 nosuch", 3, "There is no instance “nosuch”"),
        ("gnt-instance list web* nosuch", 3, "There is no instance “nosuch”"),
        ("gnt-instance info mail nosuch", 3, "There is no instance “nosuch”"),
        ("gnt-node list b* nosuch", 3, "There is no node “nosuch”"),
        ("gnt-backup list --node nosuch", 3, "There is no node “nosuch”"),
        ("gnt-job list x", 2, "“x” is no number"),
        ("gnt-instance list name~==", 2, "The filter is wrong at character 8"),
        ("gnt-instance list -F a b", 2, "one argument"),
        ("gnt-instance list -F nope", 2, "“nope”"),
        ("gnt-instance list --units=q", 2, "see “gnt-instance list --help”"),
        ("gnt-instance list --frob", 2, "--frob"),
        ("gnt-instance list -o name,,os", 2, "A field without a name is asked for in “name,,os”"),
        ("gnt-node list -o +", 2, "A field without a name is asked for in “+”"),
    ],
)
def test_mistakes_get_one_sentence(run: Run, line: str, code: int, told: str) -> None:
    ran = run(line)
    assert (ran.code, ran.out) == (code, "")
    assert told in ran.err
    assert ran.err.startswith("Failure: ")
    assert ran.err.count("\n") == 1


def test_what_the_coordinator_refuses_is_told(run: Run, coordinator: ScriptedCoordinator) -> None:
    def refuse(*_: object) -> None:
        raise NodeFailure("The disk of alpha is full.")

    coordinator.methods["Query"] = refuse
    assert run("gnt-node list") == (7, "", "Failure: The disk of alpha is full.\n")


@pytest.mark.parametrize(
    "answer", [None, [], {"fields": [{}], "data": []}, {"fields": [], "data": [[1]]}, 5]
)
def test_an_answer_of_another_form_is_no_traceback(
    run: Run, coordinator: ScriptedCoordinator, answer: object
) -> None:
    coordinator.methods["Query"] = lambda *_: answer
    ran = run("gnt-node list")
    assert ran.code == 2
    assert "not of the form agreed on" in ran.err


def test_the_whole_configuration_is_printed_as_json(run: Run) -> None:
    said = json.loads(run("gnt-cluster export-config").out)
    names = {node["name"] for node in said["nodes"].values()}
    assert (said["cluster"]["cluster_name"], names) == ("test", {"alpha", "beta", "gamma"})
