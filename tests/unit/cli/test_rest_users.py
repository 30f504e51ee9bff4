"""Users of the REST interface are made, listed and taken away."""

import json
from pathlib import Path

import pytest

from common.paths import Paths
from common.rest_users import changed, parse_users
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


class Kept:
    """The cluster's users, changed as a coordinator does."""

    def __init__(self, coordinator: ScriptedCoordinator) -> None:
        self.text = ""
        coordinator.methods |= {"RestUsers": lambda: self.text, "ChangeRestUsers": self.change}

    def change(self, add: str, remove: str) -> bool:
        self.text = changed(self.text, add, remove)
        return True


@pytest.fixture
def kept(coordinator: ScriptedCoordinator) -> Kept:
    return Kept(coordinator)


@pytest.fixture
def own(root: Path) -> Path:
    return Paths(str(root)).rapi_users


def test_a_user_gets_a_token_that_is_kept_nowhere(run: Run, kept: Kept) -> None:
    ran = run("gantry add-rest-user --role operator --expires 30d ci")
    assert ran.code == 0, ran.err
    name, _, secret = ran.out.strip().rpartition(".")
    assert name == "ci"
    assert secret not in kept.text
    user = parse_users(kept.text)["ci"]
    assert user.has_password(secret)
    assert user.role == "operator"
    assert run("gantry add-rest-user ci").code == 4


def test_users_of_the_cluster_and_those_of_this_node_are_listed_apart(
    run: Run, kept: Kept, own: Path
) -> None:
    own.parent.mkdir(parents=True)
    own.write_text("# ours\nold {cleartext}word write\n")
    assert run("gantry add-rest-user --role owner --tag shop --tag lab shop").code == 0
    assert run("gantry add-rest-user --certificate --role admin alice").code == 0
    told = json.loads(run("gantry list-rest-users --json").out)
    assert [(each["name"], each["role"], each["logs_in_by"], each["kept_in"]) for each in told] == [
        ("alice", "admin", "certificate", "cluster"),
        ("shop", "owner", "token", "cluster"),
        ("old", "admin", "password", str(own)),
    ]
    assert told[1]["tags"] == ["lab", "shop"]
    assert run("gantry remove-rest-user shop").code == 0
    assert run("gantry remove-rest-user shop").code == 3
    assert "Logs_in_by" in run("gantry list-rest-users").out
    assert [*parse_users(kept.text)] == ["alice"]
    ran = run("gantry remove-rest-user old")
    assert ran.code == 3
    assert f"{own} of this node has" in ran.err
    assert own.read_text() == "# ours\nold {cleartext}word write\n"


@pytest.mark.parametrize(
    "line",
    [
        "gantry add-rest-user --role owner x",
        "gantry add-rest-user --tag a x",
        "gantry add-rest-user a:b",
        "gantry add-rest-user #a",
        "gantry add-rest-user --expires soon x",
        "gantry add-rest-user --role king x",
    ],
)
def test_what_makes_no_sense_changes_nothing(run: Run, kept: Kept, line: str) -> None:
    assert run(line).code == 2
    assert not kept.text
