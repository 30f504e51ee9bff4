"""Where the tools print: results on standard output, all else on standard error."""

import sys


def say(text: str) -> None:
    """Print a line of the result, in time for who watches it through a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_value(key: str, value: object) -> None:
    """Print a result as a shell reads it."""
    text = str(value)
    is_plain = all(letter.isascii() and (letter.isalnum() or letter == ".") for letter in text)
    say(f"{key}={text}" if is_plain else f"{key}='{text}'")


def tell(text: str) -> None:
    """Print a line about it, after what was printed before."""
    sys.stdout.flush()
    sys.stderr.write(f"{text}\n")
