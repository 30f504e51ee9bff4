"""The small file system is one that others can read."""

from pathlib import Path

import pytest

from noded.images.fat import SPACE, DoesNotFit, fat_image
from noded.system.execute import execute
from tests.support.https_node import run
from tests.support.programs import needs

FILES = {"meta-data": b"instance-id: 1\n", "user-data": b"x" * 4000, "network-config": b""}


@needs("fsck.fat", "mtype", "mlabel")
def test_files_are_found_by_their_names_with_all_that_is_in_them(tmp_path: Path) -> None:
    image = tmp_path / "seed"
    image.write_bytes(fat_image("cidata", FILES))
    run(execute("fsck.fat", "-n", "-V", str(image), timeout_s=20))
    label = run(execute("mlabel", "-i", str(image), "-s", "::", timeout_s=20)).stdout
    assert b"CIDATA" in label
    for name, content in FILES.items():
        read = run(execute("mtype", "-i", str(image), f"::{name}", timeout_s=20)).stdout
        assert read == content


def test_more_than_fits_is_refused() -> None:
    fat_image("cidata", {"user-data": bytes(SPACE)})
    with pytest.raises(DoesNotFit, match=r"at most 10.. KiB fit"):
        fat_image("cidata", {"user-data": bytes(SPACE + 1)})
