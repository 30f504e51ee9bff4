"""Where the tools print: results on standard output, all else on standard error."""

import sys


def say(text: str) -> None:
    """Print a line of the result, in time for who watches it through a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tell(text: str) -> None:
    """Print a line about it, after what was printed before."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
