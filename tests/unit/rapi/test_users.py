"""Ganeti's file of users works as it is."""

import base64
import hashlib
from pathlib import Path

import pytest

from common.errors import Conflict, InvalidRequest, NotFound
from common.rest_users import (
    LARGEST_BYTES,
    REALM,
    changed,
    hashed,
    options_for,
    parse_users,
    without,
)
from coordinator.rapi.users import Users, UsersFile, common_name, credentials

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
    users = parse_users(TEXT + "fay x operator\ngil x owner=shop,owner=lab\n")
    roles = {name: user.role for name, user in users.items()}
    assert roles == {
        "alice": "admin", "bob": "read-only", "carol": "admin", "dave": "nobody", "eve": "admin",
        "fay": "operator", "gil": "owner",
    }  # fmt: skip
    assert users["gil"].owns == {"shop", "lab"}
    for role in ("admin", "read-only", "operator"):
        assert any(user.options == options_for(role) for user in users.values()) or role == "admin"


def test_a_token_is_known_until_it_expires(tmp_path: Path) -> None:
    now_s = [1_000_000_000.0]
    path = tmp_path / "users"
    options = ",".join(options_for("operator", expires_s=now_s[0] + 60))
    path.write_text(f"ci {hashed('word')} {options}\nold x write,expires=yesterday\n")
    users = UsersFile(path, lambda: now_s[0])
    assert users.log_in("Bearer ci.word") is not None
    assert users.log_in("Bearer ci.other") is None
    assert users.log_in("Bearer word") is None
    assert users.find("old") is None
    now_s[0] += 61
    assert users.log_in("Bearer ci.word") is None


def test_a_certificate_stands_for_a_password_only_where_the_file_says_so(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("alice {CERTIFICATE} write\nbob word write\n")
    users = UsersFile(path, lambda: 0.0)

    def shown(name: str) -> dict[str, object]:
        return {"subject": ((("countryName", "DE"),), (("commonName", name),))}

    assert users.certified(shown("alice")) is not None
    assert users.certified(shown("bob")) is None
    assert users.certified(shown("eve")) is None
    assert users.certified(None) is None
    assert common_name({"subject": ()}) is None
    assert not parse_users(path.read_text())["alice"].has_password("{CERTIFICATE}")


def test_a_line_is_removed_and_all_others_stay() -> None:
    assert "bob" not in parse_users(without(TEXT, "bob"))
    assert parse_users(without(TEXT, "bob")).keys() == parse_users(TEXT).keys() - {"bob"}
    assert without(TEXT, "bob").startswith("# who may what")


def test_a_changed_file_counts_at_once(tmp_path: Path) -> None:
    path = tmp_path / "users"
    users = UsersFile(path, lambda: 0.0)
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


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "x y\nz w write",
        "x y write\n",
        " x y",
        "# a b",
        "x y\x1b write",
        "x y write,read",
        "\n",
    ],
)
def test_what_is_no_line_of_a_user_is_not_added(line: str) -> None:
    """A line that is two would let somebody in whom nobody has named."""
    with pytest.raises(InvalidRequest):
        changed("", add=line)


def test_users_are_added_and_removed_by_name() -> None:
    text = changed("# ours\nbob secret read\n", add="eve secret write")
    assert text == "# ours\nbob secret read\neve secret write\n"
    with pytest.raises(Conflict, match="There is a user bob already"):
        changed(text, add="bob other write")
    with pytest.raises(NotFound, match="There is no user mallory"):
        changed(text, remove="mallory")
    assert changed(text, remove="bob") == "# ours\neve secret write\n"
    assert changed(text, add="bob other write", remove="bob").endswith("\nbob other write\n")


def test_users_have_an_end() -> None:
    with pytest.raises(InvalidRequest, match="too many users"):
        changed("", add=f"bob {'x' * LARGEST_BYTES}")


def test_who_is_in_any_of_the_files_is_let_in(tmp_path: Path) -> None:
    own, cluster = tmp_path / "own", tmp_path / "cluster"
    users = Users(UsersFile(own, lambda: 0.0), UsersFile(cluster, lambda: 0.0))

    def role(name: str, password: str) -> str | None:
        user = users.log_in("Basic " + base64.b64encode(f"{name}:{password}".encode()).decode())
        return user and user.role

    own.write_text("bob one read\n")
    assert role("bob", "one") == "read-only"
    assert role("bob", "two") is None
    cluster.write_text("bob two write\neve {CERTIFICATE} operator\n")
    assert (role("bob", "one"), role("bob", "two")) == ("read-only", "admin")
    found = users.certified({"subject": ((("commonName", "eve"),),)})
    assert found is not None
    assert found.role == "operator"
    cluster.unlink()
    assert role("bob", "two") is None
