"""The script ``create`` of the operating system “image”: puts an image onto the first disk.

``python -P -m noded.images.create CACHE RULES``: where images from elsewhere are kept, and what
root of this node says of files that guests may be given. All else is in the environment, as for
any definition of an operating system.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from common.errors import GntError
from noded.hypervisor.rules import open_image as open_allowed
from noded.hypervisor.rules import read_rules
from noded.images.cache import ImageCache, sum_of
from noded.images.confined import confined
from noded.images.contents import AS_QCOW2, Contents, Layout, contents_of
from noded.images.fat import DoesNotFit, fat_image
from noded.images.qcow2 import BadImage
from noded.images.seed import LABEL, BadSetting, seed_files
from noded.images.wanted import SEED_DISK, seed_disk, wanted_image
from noded.images.writing import open_image, write_image


def main() -> None:
    try:
        install(dict(os.environ), cache=Path(sys.argv[1]), rules=Path(sys.argv[2]))
    except (BadImage, BadSetting, DoesNotFit, GntError, OSError) as error:
        tell(f"Cannot install the image: {str(error).rstrip('.')}.")
        sys.exit(1)


def install(told: Mapping[str, str], *, cache: Path, rules: Path) -> None:
    """Put the image onto the first disk, and what the guest is told onto the one for that.

    Args:
        told: the environment.
        cache: where images from elsewhere are kept.
        rules: root's word on files.

    Raises:
        BadImage, BadSetting, DoesNotFit, GntError, OSError: it cannot be done.
    """
    seed = _seed(told)
    source = _source(told, cache, rules)
    disk = _open_disk(told, 0)
    is_zeros = told.get("INSTANCE_REINSTALL") != "1"
    tell(f"writing the image to disk 0 ({disk.size >> 20} MiB)")
    confined(lambda: write_image(open_image(source), disk, is_zeros=is_zeros, tell=tell))
    if seed is not None:
        number, image = seed
        tell(f"writing what the guest is told at its first boot to disk {number}")
        _write_seed(_open_disk(told, number), image)
    tell("done")


def tell(line: str) -> None:
    print(line, flush=True)  # noqa: T201 -- this is a program


def _seed(told: Mapping[str, str]) -> tuple[int, bytes] | None:
    """Return the number of the disk for the seed, and what goes there; None: there is no such."""
    number = seed_disk(told)
    return None if number is None else (number, fat_image(LABEL, seed_files(told)))


def _source(told: Mapping[str, str], cache: Path, rules: Path) -> int:
    wanted = wanted_image(told)
    if wanted.url:
        return ImageCache(cache, confined).open(wanted.url, wanted.sha256, tell)
    descriptor = open_allowed(read_rules(rules), wanted.path, never=(cache,))
    if wanted.sha256 and (found := sum_of(descriptor)) != wanted.sha256:
        raise BadImage(
            f"{wanted.path} is another image: its SHA-256 is {found}, not {wanted.sha256}"
        )
    return descriptor


def _open_disk(told: Mapping[str, str], number: int) -> Contents:
    path, kind = (told.get(f"DISK_{number}_{name}", "") for name in ("PATH", "BACKEND_TYPE"))
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    return contents_of(descriptor, Layout(is_qcow2=kind == AS_QCOW2))


def _write_seed(disk: Contents, image: bytes) -> None:
    if disk.size < len(image):
        raise DoesNotFit(f"the disk {SEED_DISK} needs at least {len(image) >> 20} MiB")
    disk.write(image, 0)
    disk.sync()


if __name__ == "__main__":
    main()
