"""Processes that noded starts and that outlive it."""

import asyncio
import os
from pathlib import Path

import pytest

from noded.system.process import start


@pytest.fixture
def unwanted() -> int:
    """Leave a descriptor open that whoever is started would get, as libraries do."""
    return os.open("/dev/zero", os.O_RDONLY)


def test_a_process_gets_the_descriptors_it_is_handed_and_no_others(
    tmp_path: Path, unwanted: int
) -> None:
    wanted, log = os.open("/dev/full", os.O_RDONLY), tmp_path / "log"
    os.set_inheritable(unwanted, True)  # noqa: FBT003 -- its only way
    try:
        with start(("ls", "-l", "/proc/self/fd"), log, [wanted]) as process:
            asyncio.run(process.ended())
    finally:
        os.close(wanted)
        os.close(unwanted)
    said = log.read_text(encoding="utf-8")
    assert f"{wanted} -> /dev/full" in said
    assert "/dev/zero" not in said
