"""The process that runs a script claims disks, so it does not wait for ever."""

import os
from pathlib import Path

import pytest

from noded.operating_systems.worker import meet


@pytest.mark.parametrize("access", [os.O_RDONLY, os.O_WRONLY])
def test_who_comes_to_a_stream_alone_gives_up_and_takes_it_away(
    tmp_path: Path, access: int
) -> None:
    stream = tmp_path / "stream"
    os.mkfifo(stream)
    with pytest.raises(TimeoutError, match="nobody has come to the other end"):
        meet(str(stream), access, patience_s=0.01)
    assert not stream.exists()
