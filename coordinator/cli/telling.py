"""The end of a command: a sentence for people or, with ``--json``, an object for programs."""

import argparse
import json
from collections.abc import Sequence
from typing import Any

MOST_NAMED = 10


def in_words(names: Sequence[str]) -> str:
    """Return ``web1, web2 and web3``, or the first ten and how many there are besides."""
    shown = list(names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown.append(f"{len(names) - MOST_NAMED} others")
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def tell(options: argparse.Namespace, told: Any, *sentences: str) -> None:
    """Print what came of a command.

    Args:
        options: of its command line; ``json`` decides.
        told: for programs.
        sentences: for people, one a line.
    """
    if options.json:
        print(json.dumps(told, ensure_ascii=False))
    else:
        for sentence in sentences:
            print(sentence)
