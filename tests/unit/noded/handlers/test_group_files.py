"""What is published on a node is for its daemon to read, and for nobody else."""

import asyncio
import os
from pathlib import Path
from unittest.mock import patch

from common.paths import Paths
from noded.handlers.confd import ConfdHandlers
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
