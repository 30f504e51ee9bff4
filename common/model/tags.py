"""Tags: words that operators give to objects. What may be one is Ganeti's rule."""

import re
from collections.abc import Collection

from common.errors import InvalidRequest

LONGEST_TAG = 128  # characters
MOST_TAGS = 4096  # of one object

_TAG = re.compile(r"[\w.+*/:@-]+")


def check_tags(tags: Collection[str]) -> None:
    """Refuse what cannot be the tags of one object.

    Raises:
        InvalidRequest: names the first that is none, or says how many there may be.
    """
    for tag in tags:
        if len(tag) > LONGEST_TAG:
            raise InvalidRequest(
                f"A tag has at most {LONGEST_TAG} characters; “{tag[:20]}…” has {len(tag)}."
            )
        if not _TAG.fullmatch(tag):
            raise InvalidRequest(f"“{tag}” is no tag: use letters, digits and the signs .+*/:@-_")
    if len(tags) > MOST_TAGS:
        raise InvalidRequest(f"An object has at most {MOST_TAGS} tags, and not {len(tags)}.")
