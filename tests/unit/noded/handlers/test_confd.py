"""What is published on a node is for its daemon to read, and for nobody else."""

import asyncio
import os
from pathlib import Path
from unittest.mock import patch

from noded.handlers.confd import ConfdHandlers

NOBODYS = 65_534
GROUP = NOBODYS if os.geteuid() == 0 else os.getegid()  # as far as we may give files to it


def test_the_daemons_group_may_read_and_nobody_else(tmp_path: Path) -> None:
    folder = tmp_path / "confd"
    handlers = ConfdHandlers(folder)
    asyncio.run(handlers.publish(key="before", snapshot=b"there is a group"))
    assert folder.stat().st_mode & 0o077 == 0
    with patch("noded.handlers.confd._group", lambda: GROUP):
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
