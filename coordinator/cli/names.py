"""Whether what an operator names exists, and its whole name."""

from collections.abc import Sequence

from common.luxi.client import Client
from coordinator.cli.asking import ask


def full_names(client: Client, what: str, words: Sequence[str], *, key: str = "name") -> list[str]:
    """Return the whole names of objects, each once, in the order of ``words``.

    Args:
        client: whom to ask.
        what: the kind, as "instance".
        words: names, perhaps shortened; numbers, of jobs.
        key: the field that has the name.

    Raises:
        NotFound: one does not exist; the first such is named.
    """
    rows = ask(client, what, [key], ["|", *(["==", key, word] for word in words)]).rows
    return list(dict.fromkeys(str(name) for ((_, name),) in rows))


def all_names(client: Client, what: str) -> list[str]:
    """Return the names of all objects of a kind, as "group"."""
    return sorted(str(name) for ((_, name),) in ask(client, what, ["name"], None).rows)
