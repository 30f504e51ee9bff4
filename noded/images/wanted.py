"""Which image is asked for, and what the guest is to be told: read, and nothing else."""

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from noded.images.cache import SCHEMES, SUM
from noded.images.seed import OF_FIRST_BOOT, BadSetting

SEED_DISK = "cidata"  # the name of the disk that becomes the seed


class WantedImage(NamedTuple):
    """One of ``url`` and ``path``; an empty ``sha256``, of a file, is not looked at."""

    url: str
    path: str
    sha256: str


def wanted_image(told: Mapping[str, str]) -> WantedImage:
    """Return where the image is; ``told`` is the environment of a script.

    Raises:
        BadSetting: it is not said, or not in this way.
    """
    url, path = told.get("OSP_URL", ""), told.get("OSP_FILE", "")
    sha256 = told.get("OSP_SHA256", "").lower()
    if sha256 and not SUM.fullmatch(sha256):
        raise BadSetting("sha256 has 64 hexadecimal digits")
    if bool(url) == bool(path):
        raise BadSetting("say where the image is, with one of url and file")
    # What is fetched from within a node's network is told to nobody who does not know it.
    if url and not sha256:
        raise BadSetting("an image from a url needs its sha256, too")
    if url and urlsplit(url).scheme not in SCHEMES:
        raise BadSetting(f"url begins with {' or '.join(SCHEMES)}, unlike “{url}”")
    return WantedImage(url, path, sha256)


def seed_disk(told: Mapping[str, str]) -> int | None:
    """Return the number of the disk for what the guest is told; None: there is no such.

    Raises:
        BadSetting: there is something to be told.
    """
    for number in range(1, int(told["DISK_COUNT"])):
        if told.get(f"DISK_{number}_NAME") == SEED_DISK:
            return number
    for name in OF_FIRST_BOOT:
        if told.get(f"OSP_{name.upper()}"):
            raise BadSetting(
                f"{name} is told to the guest by a small disk, and the instance has none; make it "
                f"with one more, as in --disk 1:size=4M,name={SEED_DISK},mode=ro"
            )
    return None
