"""What the master may do on a node: nothing, but what its root allows."""

import grp
import os
import pwd
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import GntError, NodeFailure
from common.noderpc.remote import MOST_BYTES, KeptFile, Remote
from noded.remote.files import AllowedFiles
from noded.remote.rules import parse_rules
from tests.support.https_node import TestCluster, beta, run, served

ME, OURS = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
FILE = KeptFile(path="/etc/ceph/ceph.conf", data=b"[global]\n", mode=0o640, owner=ME, group=OURS)
RULES = "file /etc/ceph  # and what is in it\nfile /etc/hosts\nshell\n"


def allow(root: Path, text: str = RULES, mode: int = 0o644) -> None:
    rules = root / "etc/gantry/remote"
    rules.parent.mkdir(parents=True, exist_ok=True)
    rules.write_text(text)
    rules.chmod(mode)
    (root / "etc/ceph").mkdir(exist_ok=True)


def test_files_are_put_read_and_run_over_tls(root: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller(epoch=1) as nodes:
                remote = beta(node, nodes, Remote)
                for refused in (remote.put(file=FILE), remote.get(path=FILE.path)):
                    with pytest.raises(NodeFailure, match=r"which files may .*: none yet"):
                        await refused
                with pytest.raises(NodeFailure, match="root allows them by the line “shell”"):
                    await remote.run(line="true")
                allow(root)
                assert await remote.get(path=FILE.path) is None
                for _ in range(2):
                    await remote.put(file=FILE)
                assert await remote.get(path=FILE.path) == FILE
                (told, other, no) = await remote.digests(
                    paths=(FILE.path, "/etc/hosts", "/etc/shadow")
                )
                assert (len(told.digest), other.digest, no.digest) == (64, "", "")
                ended = await remote.run(line="echo out; echo err >&2; exit 7")
                assert (ended.status, ended.output) == (7, "out\nerr\n")
            async with cluster.caller("gamma", epoch=1) as nodes:
                with pytest.raises(GntError, match=r"gamma may not ask for remote\.run"):
                    await beta(node, nodes, Remote).run(line="true")

    run(scenario())


@pytest.fixture
def files(root: Path) -> AllowedFiles:
    from common.paths import Paths

    allow(root)
    (root / "var/lib/gantry").mkdir(parents=True, exist_ok=True)
    return AllowedFiles(Paths(str(root)))


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/etc/shadow", "may not be put on this node"),
        ("/etc/hosts.allow", "may not be put on this node"),
        ("/etc/ceph/../shadow", "no plain path"),
        ("/etc/ceph/", "no plain path"),
        ("//etc/hosts", "no plain path"),
        ("/etc/gantry/remote", "may not be put on this node"),
        ("/var/lib/gantry/roster.json", "may not be put on this node"),
        ("/etc/ceph/missing/file", "Cannot use the directory"),
    ],
)
def test_no_other_file_is_put(files: AllowedFiles, root: Path, path: str, told: str) -> None:
    allow(root, RULES + "file /etc/gantry\nfile /var\n")
    with pytest.raises(NodeFailure, match=told):
        files.put(replace(FILE, path=path))


def test_rest_users_are_put_without_being_named(files: AllowedFiles, root: Path) -> None:
    files.put(replace(FILE, path="/etc/gantry/rapi-users", data=b"jack secret write\n"))
    assert (root / "etc/gantry/rapi-users").read_text() == "jack secret write\n"


def test_nothing_is_put_where_others_could_have_changed_the_way(
    files: AllowedFiles, root: Path
) -> None:
    (root / "elsewhere").mkdir()
    (root / "etc/ceph/link").symlink_to(root / "elsewhere")
    (root / "etc/ceph/open").mkdir()
    (root / "etc/ceph/open").chmod(0o777)
    (root / "etc/ceph/device").mkdir()
    for path in ("/etc/ceph/link/file", "/etc/ceph/open/file"):
        with pytest.raises(NodeFailure, match="root alone can write, and no link"):
            files.put(replace(FILE, path=path))
    with pytest.raises(NodeFailure, match="is no plain file"):
        files.put(replace(FILE, path="/etc/ceph/device"))
    (root / "etc/hosts").symlink_to(root / "elsewhere/hosts")
    with pytest.raises(NodeFailure):
        files.put(replace(FILE, path="/etc/hosts"))
    with pytest.raises(NodeFailure):
        files.get("/etc/hosts")
    assert not list((root / "elsewhere").iterdir())


def test_nothing_is_read_where_others_could_have_changed_the_way(
    files: AllowedFiles, root: Path
) -> None:
    for directory in ("elsewhere", "etc/ceph/open"):
        (root / directory).mkdir()
        (root / directory / "file").write_bytes(b"of root alone")
    (root / "etc/ceph/link").symlink_to(root / "elsewhere")
    (root / "etc/ceph/open").chmod(0o777)
    for path in ("/etc/ceph/link/file", "/etc/ceph/open/file"):
        with pytest.raises(NodeFailure, match="root alone can write, and no link"):
            files.get(path)
        assert files.digest(path) == ""
    assert files.get("/etc/ceph/none/file") is None
    (root / "etc/ceph/open").chmod(0o755)
    found = files.get("/etc/ceph/open/file")
    assert found is not None
    assert found.data == b"of root alone"


def test_a_path_that_cannot_be_looked_at_is_refused_and_the_others_are_told(
    files: AllowedFiles, root: Path
) -> None:
    (root / "etc/ceph/dangling").symlink_to(root / "etc/nowhere")
    (root / "etc/ceph/plain").touch()
    for path, told in (
        (f"/etc/ceph/{'x' * 300}/file", "File name too long"),
        (f"/etc/ceph/{'x' * 300}", "File name too long"),
        ("/etc/ceph/dangling/file", "root alone can write, and no link"),
        ("/etc/ceph/dangling/further/file", "root alone can write, and no link"),
        ("/etc/ceph/plain/file", "has to be a directory"),
        ("/etc/ceph/a\0b/file", "no plain path"),
    ):
        with pytest.raises(NodeFailure, match=told):
            files.get(path)
        assert files.digest(path) == ""


def test_owner_and_size_are_looked_at_before_anything_is_written(
    files: AllowedFiles, root: Path
) -> None:
    with pytest.raises(NodeFailure, match="no user nosuchuser or no group"):
        files.put(replace(FILE, owner="nosuchuser"))
    (root / "etc/ceph/large").write_bytes(bytes(MOST_BYTES + 1))
    with pytest.raises(NodeFailure, match="more than 2 MiB"):
        files.get("/etc/ceph/large")
    assert not (root / FILE.path[1:]).exists()


def test_rules_that_others_can_write_or_that_make_no_sense_allow_nothing(
    files: AllowedFiles, root: Path
) -> None:
    allow(root, mode=0o666)
    with pytest.raises(NodeFailure, match="has to be root's"):
        files.put(FILE)
    for text in ("file etc/hosts", "shell yes", "allow all"):
        with pytest.raises(NodeFailure, match="Line 2 of here is neither"):
            parse_rules(f"file /etc/hosts\n{text}\n", source="here")


def test_a_mode_is_no_more_than_of_plain_files(root: Path, cluster: TestCluster) -> None:
    async def scenario() -> None:
        allow(root)
        async with served(root) as node:
            await cluster.join(node, "beta")
            async with cluster.caller(epoch=1) as nodes:
                for wrong in (replace(FILE, mode=0o4755), replace(FILE, path="hosts")):
                    with pytest.raises(GntError, match=r"mode|path"):
                        await beta(node, nodes, Remote).put(file=wrong)

    run(scenario())
