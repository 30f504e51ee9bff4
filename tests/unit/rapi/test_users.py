"""Ganeti's file of users works as it is."""

import base64
import hashlib
from pathlib import Path

import pytest

from coordinator.rapi.users import REALM, Access, UsersFile, credentials, parse_users

HA1 = hashlib.md5(f"carol:{REALM}:secret".encode()).hexdigest()
TEXT = f"""# who may what

alice  secret  write
bob    {{cleartext}}secret read
carol  {{HA1}}{HA1.upper()} read, write
dave   secret
eve    {{crypt}}secret write
nobody
"""


@pytest.mark.parametrize("name", ["alice", "bob", "carol", "dave"])
def test_password_of_every_form_is_known_and_others_are_not(name: str) -> None:
    user = parse_users(TEXT)[name]
    assert user.has_password("secret")
    assert not user.has_password("Secret")
    assert not user.has_password(user.password) or user.password == "secret"


def test_password_of_unknown_form_opens_nothing() -> None:
    assert not parse_users(TEXT)["eve"].has_password("secret")


def test_lines_without_a_password_are_left_out() -> None:
    assert parse_users(TEXT).keys() == {"alice", "bob", "carol", "dave", "eve"}


def test_options_say_what_a_user_may() -> None:
    users = parse_users(TEXT)
    told = {name: [a.name for a in Access if user.may(a)] for name, user in users.items()}
    assert told["alice"] == ["OPEN", "READ", "WRITE"]
    assert told["bob"] == ["OPEN", "READ"]
    assert told["carol"] == ["OPEN", "READ", "WRITE"]
    assert told["dave"] == ["OPEN"]


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "users"
    users = UsersFile(path)
    assert users.find("alice") is None
    path.write_text("alice one write\n")
    assert users.find("alice") is not None
    path.write_text("alice another write\n")
    found = users.find("alice")
    assert found is not None
    assert found.has_password("another")
    path.unlink()
    assert users.find("alice") is None


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Basic " + base64.b64encode(b"a:b:c").decode(), ("a", "b:c")),
        ("basic " + base64.b64encode("ä:ö".encode()).decode(), ("ä", "ö")),
        ("Basic !!!!", None),
        ("Basic " + base64.b64encode(b"\xff:\xfe").decode(), None),
        ("Basic " + base64.b64encode(b"no colon").decode(), None),
        ("Digest abc", None),
        ("", None),
    ],
)
def test_credentials_are_read(header: str, expected: tuple[str, str] | None) -> None:
    assert credentials(header) == expected
