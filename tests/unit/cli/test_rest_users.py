"""Users of the REST interface are made, listed and taken away."""

import json
import stat
from pathlib import Path

import pytest

from common.paths import Paths
from common.rest_users import parse_users
from tests.unit.cli.conftest import Run


@pytest.fixture
def users(root: Path) -> Path:
    return Paths(str(root)).rapi_users


def test_a_user_gets_a_token_that_is_kept_nowhere(run: Run, users: Path) -> None:
    ran = run("gantry add-rest-user --role operator --expires 30d ci")
    assert ran.code == 0, ran.err
    name, _, secret = ran.out.strip().rpartition(".")
    assert name == "ci"
    assert secret not in users.read_text()
    user = parse_users(users.read_text())["ci"]
    assert user.has_password(secret)
    assert user.role == "operator"
    assert stat.S_IMODE(users.stat().st_mode) == 0o640
    assert run("gantry add-rest-user ci").code == 4


def test_lines_of_ganetis_file_stay_as_they_are(run: Run, users: Path) -> None:
    users.parent.mkdir(parents=True)
    users.write_text("# ours\nold {cleartext}word write\n")
    assert run("gantry add-rest-user --role owner --tag shop --tag lab shop").code == 0
    assert run("gantry add-rest-user --certificate --role admin alice").code == 0
    told = json.loads(run("gantry list-rest-users --json").out)
    assert [(each["name"], each["role"], each["logs_in_by"]) for each in told] == [
        ("alice", "admin", "certificate"),
        ("old", "admin", "password"),
        ("shop", "owner", "token"),
    ]
    assert told[2]["tags"] == ["lab", "shop"]
    assert run("gantry remove-rest-user shop").code == 0
    assert run("gantry remove-rest-user shop").code == 3
    assert users.read_text().startswith("# ours\nold {cleartext}word write\n")
    assert "Logs_in_by" in run("gantry list-rest-users").out


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
def test_what_makes_no_sense_changes_nothing(run: Run, users: Path, line: str) -> None:
    assert run(line).code == 2
    assert not users.exists()
