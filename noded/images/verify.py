"""The script ``verify`` of the operating system “image”: what can be seen before there are disks.

``python -P -m noded.images.verify CACHE RULES``, as ``noded.images.create``. Nothing is fetched,
and no image is read.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from common.errors import GntError
from noded.hypervisor.rules import open_image, read_rules
from noded.images.seed import BadSetting, seed_files
from noded.images.wanted import seed_disk, wanted_image


def main() -> None:
    try:
        check(dict(os.environ), cache=Path(sys.argv[1]), rules=Path(sys.argv[2]))
    except (BadSetting, GntError, OSError) as error:
        sys.exit(f"{str(error).rstrip('.')}.")


def check(told: Mapping[str, str], *, cache: Path, rules: Path) -> None:
    """Refuse what ``create`` would refuse for what it is told, or for a file that is not there.

    Raises:
        BadSetting, GntError, OSError: it could not be done.
    """
    if seed_disk(told) is not None:
        seed_files(told)
    if path := wanted_image(told).path:
        os.close(open_image(read_rules(rules), path, never=(cache,)))


if __name__ == "__main__":
    main()
