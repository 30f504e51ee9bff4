"""Command lines as Ganeti's tools read them: arguments may be optional, long names shortened."""

from __future__ import annotations

from common.errors import InvalidRequest
from common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


class Argument(Record):
    """What an option is given.

    Attributes:
        shown: what it is called in the help.
        completes: what a shell completes it with, as ``--help-completion`` tells it.
        read: makes the value from the text; may raise InvalidRequest.
        is_optional: it can be left out, and is only directly attached: -pNAME, --print-nodes=NAME.
    """

    shown: str
    completes: str = "none"
    read: Callable[[str], Any] = str
    is_optional: bool = False


class Option(Record):
    """One option; its value is found under its long name, with underscores for dashes.

    Attributes:
        letter: its short name; empty if there is none.
        argument: None of a flag, which is True when it is given.
        default: value when it is not given; a flag's is False.
        without: value when it is given without its argument.
        repeats: collect all values in a tuple.
        step: instead of having a value, add this to the number that is found under ``counts_in``.
    """

    name: str
    help: str
    letter: str = ""
    argument: Argument | None = None
    default: Any = None
    without: Any = True
    repeats: bool = False
    step: int = 0
    counts_in: str = ""

    @property
    def key(self) -> str:
        return self.counts_in or self.name.replace("-", "_")

    @property
    def start(self) -> Any:
        """The value when it is not given."""
        if self.repeats:
            return ()
        return False if self.argument is None and self.default is None else self.default


class Parsed:
    """Values by key, as attributes, and the arguments left over."""

    __slots__ = ("arguments", "values")

    def __init__(self, values: Mapping[str, Any], arguments: tuple[str, ...] = ()) -> None:
        self.values, self.arguments = values, arguments

    def __getattr__(self, key: str) -> Any:
        try:
            return self.values[key]
        except KeyError as error:
            raise AttributeError(key) from error

    def get(self, key: str) -> Any:
        """The value of an option that not every tool has; None where there is none."""
        return self.values.get(key)


class Usage(Exception):
    """The command line names an option that is not there, or not in that way."""


def parse(options: Sequence[Option], words: Sequence[str]) -> Parsed:
    """Read a command line.

    Raises:
        Usage: an option is unknown, ambiguous, or has or lacks an argument.
        InvalidRequest: an argument cannot be read.
    """
    values = {option.key: option.start for option in options if not option.counts_in}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            rest += left
            break
        if word.startswith("--"):
            name, sign, text = word[2:].partition("=")
            _take(values, _named(options, name), text if sign else None, left)
        elif word.startswith("-") and len(word) > 1:
            _take_letters(values, options, word[1:], left)
        else:
            rest.append(word)
    return Parsed(values, tuple(rest))


def _take_letters(
    values: dict[str, Any], options: Sequence[Option], letters: str, left: list[str]
) -> None:
    while letters:
        letter, letters = letters[0], letters[1:]
        option = next((each for each in options if each.letter == letter), None)
        if option is None:
            raise Usage(f"unrecognized option `-{letter}'")
        if option.argument is None:
            _take(values, option, None, left)
        else:
            _take(values, option, letters or None, left)
            return


def _named(options: Sequence[Option], name: str) -> Option:
    near = [option for option in options if option.name.startswith(name)]
    exact = [option for option in near if option.name == name]
    if not near:
        raise Usage(f"unrecognized option `--{name}'")
    if len(near) > 1 and not exact:
        names = ", ".join(f"--{option.name}" for option in near)
        raise Usage(f"option `--{name}' is ambiguous; could be one of: {names}")
    return (exact or near)[0]


def _take(values: dict[str, Any], option: Option, text: str | None, left: list[str]) -> None:
    argument, key = option.argument, option.key
    if argument is None:
        if text is not None:
            raise Usage(f"option `--{option.name}' doesn't allow an argument")
        values[key] = values[key] + option.step if option.step else option.without
        return
    if text is None and not argument.is_optional:
        if not left:
            raise Usage(f"option `--{option.name}' requires an argument {argument.shown}")
        text = left.pop(0)
    value = option.without if text is None else argument.read(text)
    values[key] = (*values[key], value) if option.repeats else value


def number(
    shown: str, what: str, kind: Callable[[str], Any] = int, *, positive: bool = False
) -> Argument:
    """Make an argument that is a number; ``what`` names it when it cannot be read.

    With ``positive``, whole numbers are not below 0, and others above it.
    """

    def read(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError as error:
            raise InvalidRequest(f"{what}: cannot parse string '{text}'") from error
        if positive and (value < 0 or (kind is float and value == 0)):
            raise InvalidRequest(f"Invalid value of the {what}, expected >0")
        return value

    return Argument(shown, "integer" if kind is int else "float", read)


def one_of(shown: str, choices: Mapping[str, Any], complaint: str) -> Argument:
    """Make an argument that is one of some words; ``complaint`` has {} for another one."""

    def read(text: str) -> Any:
        if text not in choices:
            raise InvalidRequest(complaint.format(text))
        return choices[text]

    return Argument(shown, f"choices={','.join(choices)}", read)


def words(text: str) -> tuple[str, ...]:
    """Read a list separated by commas."""
    return tuple(text.split(","))
