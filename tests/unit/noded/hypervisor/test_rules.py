"""What root of a node lets guests be given, and as whom they run."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import NodeFailure
from common.names import InstanceId
from noded.hypervisor.kvm.user import NOBODY, ROOT, choose_user, find_user, run_as
from noded.hypervisor.rules import (
    Rules,
    check_program,
    open_image,
    parse_rules,
    read_password,
    read_rules,
)
from noded.operating_systems.sandbox import UNTRUSTED

PROJECT = Path(__file__).parents[4]
WEB1 = InstanceId("11111111-0000-4000-8000-000000000001")


def images(*allowed: Path) -> Rules:
    return Rules(source="/etc/gantry/guests", images=tuple(map(str, allowed)))


def opened(rules: Rules, path: Path, *never: Path) -> bytes:
    descriptor = open_image(rules, str(path), never=never)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def test_rules_are_read() -> None:
    text = """
    # comment
    image /srv/a directory   # with a blank in its name
    image /boot/vmlinuz
    secret /etc/gantry/vnc
    program /opt/qemu/bin
    users 200000-200009
    """
    assert parse_rules(text, source="f") == Rules(
        source="f",
        programs=("/opt/qemu/bin",),
        images=("/srv/a directory", "/boot/vmlinuz"),
        secrets=("/etc/gantry/vnc",),
        users=range(200_000, 200_010),
    )


def test_without_rules_there_is_debians_qemu_and_no_image(tmp_path: Path) -> None:
    rules = read_rules(tmp_path / "guests")
    assert rules.programs == ("/usr/bin/qemu-system-x86_64",)
    assert rules.images == ()
    assert rules == parse_rules("", source=rules.source)


@pytest.mark.parametrize(
    "line",
    ["image srv", "image", "programs /x", "users 5", "users 0-10", "users 999-2000",
     "users 9000-8000", "users 4294967000-4294967295", "users 1000-99999999999"],
)  # fmt: skip
def test_a_line_without_sense_is_named(line: str) -> None:
    with pytest.raises(NodeFailure, match="Line 2 of /etc/gantry/guests is none of"):
        parse_rules(f"\n{line}\n", source="/etc/gantry/guests")


@given(st.text(max_size=60))
def test_no_text_gives_more_than_it_says(text: str) -> None:
    try:
        rules = parse_rules(text, source="f")
    except NodeFailure:
        return
    assert all(path in text for path in rules.images)
    assert rules.users.start >= 1000


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
def test_rules_that_others_can_write_are_none(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "guests"
    path.write_text("image /\n")
    path.chmod(mode)
    with pytest.raises(NodeFailure, match="has to be root's, and writable by nobody else"):
        read_rules(path)


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT ROOT: cannot give files away")
def test_rules_that_belong_to_somebody_else_are_none(tmp_path: Path) -> None:
    path = tmp_path / "guests"
    path.write_text("image /\n")
    os.chown(path, 1000, 0)
    with pytest.raises(NodeFailure, match="has to be root's"):
        read_rules(path)


def test_the_rules_that_are_shipped_are_rules() -> None:
    rules = parse_rules((PROJECT / "deploy/guests").read_text(), source="deploy/guests")
    assert rules.users == Rules(source="").users
    assert rules.programs == Rules(source="").programs
    assert rules.images == ("/srv/images",)


def test_images_are_opened_where_they_are_allowed_and_nowhere_else(tmp_path: Path) -> None:
    inside, outside = tmp_path / "images" / "kernel", tmp_path / "images-not" / "kernel"
    for path in (inside, outside):
        path.parent.mkdir()
        path.write_bytes(b"kernel")
    assert opened(images(tmp_path / "images"), inside) == b"kernel"
    assert opened(images(inside), inside) == b"kernel"
    for path in (outside, Path(f"{inside.parent}/../images-not/kernel")):
        with pytest.raises(NodeFailure, match="may not be given to guests here"):
            opened(images(tmp_path / "images"), path)


def test_links_are_followed_before_an_image_is_looked_at(tmp_path: Path) -> None:
    secret, kernel = tmp_path / "secret", tmp_path / "images" / "vmlinuz-6"
    kernel.parent.mkdir()
    kernel.write_bytes(b"kernel")
    secret.write_bytes(b"secret")
    (kernel.parent / "vmlinuz").symlink_to("vmlinuz-6")
    (kernel.parent / "initrd").symlink_to("../secret")
    rules = images(kernel.parent)
    assert opened(rules, kernel.parent / "vmlinuz") == b"kernel"
    with pytest.raises(NodeFailure, match="initrd may not be given to guests"):
        opened(rules, kernel.parent / "initrd")


def test_the_allowed_directory_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "kernel").write_bytes(b"kernel")
    (tmp_path / "images").symlink_to("real")
    assert opened(images(tmp_path / "images"), tmp_path / "images" / "kernel") == b"kernel"


def test_directories_of_our_own_are_never_images(tmp_path: Path) -> None:
    key = tmp_path / "identity" / "key.pem"
    key.parent.mkdir()
    key.write_bytes(b"key")
    with pytest.raises(NodeFailure, match="may not be given to guests"):
        opened(images(Path("/")), key, key.parent)


@pytest.mark.parametrize("kind", ["private", "directory", "pipe", "missing"])
def test_only_a_file_that_everybody_may_read_is_an_image(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "kernel"
    match kind:
        case "private":
            path.write_bytes(b"secret")
            path.chmod(0o640)
        case "directory":
            path.mkdir()
        case "pipe":
            os.mkfifo(path)
        case _:
            pass
    says = "No such file" if kind == "missing" else "a file that everybody may read"
    with pytest.raises(NodeFailure, match=says):
        opened(images(tmp_path), path)


def test_a_program_has_to_be_named_and_roots_own(tmp_path: Path) -> None:
    program = tmp_path / "qemu"
    program.write_bytes(b"")
    with pytest.raises(NodeFailure, match="root of this node says in /etc/gantry/guests which"):
        check_program(images(), str(program))
    rules = parse_rules(f"program {tmp_path}\n", source="f")
    assert check_program(rules, str(program)) == str(program)
    program.chmod(0o777)
    with pytest.raises(NodeFailure, match=f"others than root can write {program}"):
        check_program(rules, str(program))
    program.chmod(0o755)
    tmp_path.chmod(0o777)
    with pytest.raises(NodeFailure, match=f"others than root can write {tmp_path}"):
        check_program(rules, str(program))


def test_a_sticky_bit_makes_nothing_roots_but_what_is_in_a_directory_of_root(
    tmp_path: Path,
) -> None:
    program = tmp_path / "qemu"
    program.write_bytes(b"")
    rules = parse_rules(f"program {tmp_path}\n", source="f")
    tmp_path.chmod(0o1777)
    assert check_program(rules, str(program)) == str(program)
    program.chmod(0o1777)
    with pytest.raises(NodeFailure, match=f"others than root can write {program}"):
        check_program(rules, str(program))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give directories away")
def test_a_sticky_directory_of_somebody_else_is_no_place_for_a_program(tmp_path: Path) -> None:
    directory = tmp_path / "theirs"
    directory.mkdir()
    program = directory / "qemu"
    program.write_bytes(b"")
    os.chown(directory, 65534, 65534)
    directory.chmod(0o1755)  # its owner removes and renames what others have put there
    rules = parse_rules(f"program {directory}\n", source="f")
    with pytest.raises(NodeFailure, match=f"others than root can write {directory}"):
        check_program(rules, str(program))


def test_a_user_is_chosen_that_nobody_has() -> None:
    users = range(70_000, 70_010)
    first = choose_user((users,), WEB1, lambda _: False)
    assert first in users
    second = choose_user((users,), WEB1, lambda user: user == first)
    assert second in users
    assert second != first
    assert {choose_user((users,), WEB1, free.__ne__) for free in users} == set(users)
    assert choose_user((users,), WEB1, lambda _: True) is None


@pytest.mark.skipif(os.geteuid() != ROOT, reason="guests run as who is not root itself")
def test_no_guest_is_of_the_user_of_scripts_or_of_nobody() -> None:
    users = range(UNTRUSTED - 1, NOBODY + 1)
    rules = Rules(source="/etc/gantry/guests", users=users)
    assert find_user((users,), rules, WEB1, ()) == users[0]
    with pytest.raises(NodeFailure, match="All user ids from 65532 to 65534 are in use"):
        find_user((users,), rules, WEB1, (users[0],))


def test_all_is_given_up_before_the_program_is_loaded() -> None:
    line = run_as(70_000, (), ("/usr/bin/qemu", "-x"))
    assert line[-3:] == ("--", "/usr/bin/qemu", "-x")
    assert {"--reuid=70000", "--regid=70000", "--clear-groups", "--no-new-privs"} < set(line)
    assert "--groups=103" in run_as(70_000, (103,), ("/usr/bin/qemu",))
    assert run_as(os.geteuid(), (), ("/usr/bin/qemu",)) == ("/usr/bin/qemu",)


def passwords(*allowed: Path) -> Rules:
    return Rules(source="/etc/gantry/guests", secrets=tuple(map(str, allowed)))


def password(path: Path, text: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(text)
    path.chmod(mode)
    return path


def test_the_password_of_a_display_is_the_first_line_of_a_file_that_root_has_named(
    tmp_path: Path,
) -> None:
    allowed, other = tmp_path / "vnc", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    path = password(allowed / "web1", b"s3cret!\nmore\n")
    assert read_password(passwords(allowed), str(path), never=()) == "s3cret!"
    for rules, never in (
        (passwords(), ()),
        (passwords(other), ()),
        (passwords(allowed), (allowed,)),
    ):
        with pytest.raises(NodeFailure, match="may not be a password or a key of a display"):
            read_password(rules, str(path), never=never)
    hidden = password(other / "shadow", b"root\n")
    (allowed / "link").symlink_to(hidden)
    with pytest.raises(NodeFailure, match="may not be a password"):
        read_password(passwords(allowed), str(allowed / "link"), never=())


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (b"s3cret\n", 0o644, "readable by nobody else"),
        (b"s3cret\n", 0o620, "readable by nobody else"),
        (b"\n", 0o600, "1 to 8 ASCII characters"),
        (b"ninechars\n", 0o600, "1 to 8 ASCII characters"),
        ("schlüss\n".encode(), 0o600, "1 to 8 ASCII characters"),
    ],
)
def test_a_password_that_is_none_is_refused_without_being_told(
    text: bytes, mode: int, why: str, tmp_path: Path
) -> None:
    path = password(tmp_path / "web1", text, mode)
    with pytest.raises(NodeFailure, match=why) as caught:
        read_password(passwords(tmp_path), str(path), never=())
    said = text.decode().strip()
    assert not said or said not in str(caught.value)


def test_users_of_several_ranges_are_all_chosen_from() -> None:
    parts = (range(70_000, 70_003), range(70_010, 70_011), range(70_020, 70_025))
    every = {user for part in parts for user in part}
    assert {choose_user(parts, WEB1, free.__ne__) for free in every} == every
    assert choose_user(parts, WEB1, lambda _: True) is None
