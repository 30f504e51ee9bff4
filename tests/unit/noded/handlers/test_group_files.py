"""What is published on a node is for its daemon to read, and for nobody else."""

import asyncio
import errno
import os
import stat
from pathlib import Path
from unittest.mock import patch

import pytest

from common.errors import NodeFailure
from common.paths import Paths
from noded.ganeti_paths import GanetiPaths
from noded.handlers.confd import ConfdHandlers
from noded.handlers.files import FileHandlers
from noded.handlers.rest_users import RestUsersHandlers

NOBODYS = 65_534
GROUP = NOBODYS if os.geteuid() == 0 else os.getegid()  # as far as we may give files to it


def test_the_daemons_group_may_read_and_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "confd"
    handlers = ConfdHandlers(folder)
    asyncio.run(handlers.publish(key="before", snapshot=b"there is a group"))
    assert folder.stat().st_mode & 0o077 == 0
    with patch("noded.handlers.group_files.id_of", lambda _: GROUP):
        asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    assert (folder.stat().st_gid, folder.stat().st_mode & 0o777) == (GROUP, 0o750)
    for name, content in {"hmac.key": b"key", "snapshot": b"packed"}.items():
        told = (folder / name).stat()
        assert (told.st_gid, told.st_mode & 0o777) == (GROUP, 0o640)
        assert (folder / name).read_bytes() == content


def test_what_is_there_already_is_not_written_again(tmp_path: Path) -> None:
    handlers = ConfdHandlers(tmp_path)
    asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    before = {name: (tmp_path / name).stat().st_ino for name in ("hmac.key", "snapshot")}
    asyncio.run(handlers.publish(key="key", snapshot=b"another one"))
    assert (tmp_path / "hmac.key").stat().st_ino == before["hmac.key"]
    assert (tmp_path / "snapshot").read_bytes() == b"another one"


@pytest.mark.parametrize("kind", ["confd", "ssconf"])
def test_what_is_told_again_after_a_failure_is_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    async def publish() -> None:
        if kind == "confd":
            await ConfdHandlers(tmp_path).publish(key="key", snapshot=b"packed")
        else:
            ssconf = FileHandlers(tmp_path, GanetiPaths(Paths(str(tmp_path / "root"))))
            await ssconf.publish(files={"cluster_name": "c\n", "master_node": "n\n"})

    def sync(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            synced.append(descriptor)
            if is_broken:
                raise OSError(errno.EIO, os.strerror(errno.EIO))

    is_broken, synced = True, list[int]()
    monkeypatch.setattr(os, "fsync", sync)
    for _ in range(3):  # two files are renamed, one after the other; then both are there
        with pytest.raises(NodeFailure, match="input/output error"):
            asyncio.run(publish())
    is_broken, synced[:] = False, []
    asyncio.run(publish())
    assert len(synced) == 1


def test_a_file_with_another_mode_is_written_again(tmp_path: Path) -> None:
    handlers = ConfdHandlers(tmp_path)
    asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    (tmp_path / "hmac.key").chmod(0o644)
    asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    assert (tmp_path / "hmac.key").stat().st_mode & 0o777 == 0o640


def test_files_become_the_groups_as_soon_as_it_is_there(tmp_path: Path) -> None:
    handlers = ConfdHandlers(tmp_path)
    asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    with patch("noded.handlers.group_files.id_of", lambda _: GROUP):
        asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    assert {file.stat().st_gid for file in tmp_path.iterdir()} == {GROUP}


def test_what_is_withdrawn_is_gone_and_may_be_withdrawn_again(tmp_path: Path) -> None:
    folder = tmp_path / "confd"
    handlers = ConfdHandlers(folder)
    asyncio.run(handlers.withdraw())
    asyncio.run(handlers.publish(key="key", snapshot=b"packed"))
    asyncio.run(handlers.withdraw())
    asyncio.run(handlers.withdraw())
    assert not list(folder.iterdir())


def test_users_of_the_rest_interface_are_kept_likewise(tmp_path: Path) -> None:
    paths = Paths(str(tmp_path))
    file, certificate = paths.cluster_rapi_users, paths.cluster_rapi_certificate
    handlers = RestUsersHandlers(paths)
    with patch("noded.handlers.group_files.id_of", lambda _: GROUP):
        asyncio.run(handlers.publish(users="bob secret read\n"))
        asyncio.run(handlers.publish_certificate(pem="PEM"))
    assert (file.parent.stat().st_gid, file.parent.stat().st_mode & 0o777) == (GROUP, 0o750)
    assert (file.stat().st_gid, file.stat().st_mode & 0o777) == (GROUP, 0o640)
    assert file.read_text() == "bob secret read\n"
    assert (certificate.stat().st_mode & 0o777, certificate.read_text()) == (0o640, "PEM")
    asyncio.run(handlers.withdraw())
    asyncio.run(handlers.withdraw())
    assert not list(file.parent.iterdir())
