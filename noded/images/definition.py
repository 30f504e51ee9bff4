"""The operating system that comes with Gantry: a published image, and what it is told."""

import sys
from pathlib import Path

from common.noderpc.operating_systems import Script
from noded.operating_systems.definition import Definition

PARAMETERS = (
    ("url", "where the image is fetched from (http, https); kept on the node"),
    ("file", "or its path on the node, as root of the node allows"),
    ("sha256", "of the image; needed with url"),
    ("user", "made at the first boot, with the right to become root"),
    ("ssh_key", "that this user, or the usual one, is reached with"),
    ("password", "of this user, plain or hashed; give it as private or secret"),
    ("hostname", "instead of the instance's name"),
    ("user_data", "told to cloud-init instead of the above"),
    ("prefix", "length of the prefix of IPv4 addresses that are in no network (24)"),
    ("prefix6", "likewise of IPv6 addresses (64)"),
    ("gateway", "of the first nic, where it has an address"),
    ("nameservers", "addresses, with spaces"),
)


def image_definition(cache: Path, rules: Path) -> Definition:
    """Return the definition.

    Args:
        cache: where fetched images are kept.
        rules: root's word on which files of the node may be used.
    """
    scripts = {
        script: (sys.executable, "-P", "-m", module, str(cache), str(rules))
        for script, module in (
            (Script.CREATE, "noded.images.create"),
            (Script.VERIFY, "noded.images.verify"),
        )
    }
    return Definition(
        name="image",
        api_versions=(20,),
        scripts=scripts,
        parameters=PARAMETERS,
        knows_formats=True,
    )
