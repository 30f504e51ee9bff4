"""The end of a command: a sentence for people or, with ``--json``, an object for programs."""

import argparse
import json
from typing import Any


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
