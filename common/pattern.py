"""Regular expressions that clients send: whatever is asked for, it takes time in proportion.

Everybody who may list may send a pattern, and it is looked for in the coordinator's own thread.
Python's ``re`` tries one way after the other: for some patterns of ten characters, five letters
are too many. RE2 follows all ways at once, within the memory it is given.
"""

from collections.abc import Callable

from common.errors import InvalidRequest

LONGEST_PATTERN = 1000  # characters
LARGEST_PATTERN = 1 << 20  # bytes that RE2 may use for one; with less it gets slow, not wrong


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return what tells whether a text has something that fits ``pattern``.

    Raises:
        InvalidRequest: it is none, too large, or asks for what only trying can find.
    """
    import re2  # 5 ms, and few filters have a pattern

    if len(pattern) > LONGEST_PATTERN:
        raise InvalidRequest(f"A pattern may have {LONGEST_PATTERN} characters, not more.")
    options = re2.Options()
    options.max_mem = LARGEST_PATTERN
    options.never_capture = True  # whether, not where
    options.log_errors = False  # they would go to stderr
    try:
        expression = re2.compile(pattern.encode(), options)
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"“{pattern!a}” is no text.") from error
    except re2.error as error:
        raise InvalidRequest(
            f"“{pattern}” is no regular expression that can be used here: "
            f"{error.args[0].decode(errors='replace')}. They are RE2's expressions, which "
            "have neither look-around nor references to what was found before."
        ) from error
    re2.purge()  # the library would keep the last 128, and all of the memory that they were given

    def is_found(text: str) -> bool:
        return expression.search(text.encode(errors="replace")) is not None

    return is_found
