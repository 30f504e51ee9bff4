"""Command lines as Ganeti's tools read them: arguments may be optional, long names shortened."""

from __future__ import annotations

from enum import Enum

from common.errors import InvalidRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


class Takes(Enum):
    """Whether an option has an argument."""

    NOTHING = "nothing"
    SOMETHING = "something"
    PERHAPS = "perhaps"  # only directly attached: -pNAME, --print-nodes=NAME


class Option:
    """One option.

    No dataclass: ``hail`` answers a small request in less time than ``dataclasses`` takes to
    import.

    Attributes:
        key: under which its value is found; a flag's is True, a counted one's a number.
        letter: its short name; empty if there is none.
        argument: what its argument is called in the help.
        read: makes the value from the text; may raise InvalidRequest.
        default: value when it is not given.
        without: value of an optional argument that is not there.
        repeats: collect all values in a tuple.
        step: instead of a value, add this to what ``key`` has.
        completes: what a shell completes the argument with, as ``--help-completion`` tells it.
    """

    __slots__ = (
        "argument", "completes", "default", "help", "key", "letter", "name", "read", "repeats",
        "step", "takes", "without",
    )  # fmt: skip

    def __init__(
        self,
        *,
        key: str,
        name: str,
        help: str,
        letter: str = "",
        argument: str = "",
        takes: Takes = Takes.NOTHING,
        read: Callable[[str], Any] = str,
        default: Any = None,
        without: Any = True,
        repeats: bool = False,
        step: int = 0,
        completes: str = "none",
    ) -> None:
        self.key, self.name, self.letter, self.help = key, name, letter, help
        self.argument, self.takes, self.read = argument, takes, read
        self.default, self.without, self.repeats, self.step = default, without, repeats, step
        self.completes = completes


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


class Usage(Exception):
    """The command line names an option that is not there, or not in that way."""


def parse(options: Sequence[Option], words: Sequence[str]) -> Parsed:
    """Read a command line.

    Raises:
        Usage: an option is unknown, ambiguous, or has or lacks an argument.
        InvalidRequest: an argument cannot be read.
    """
    values: dict[str, Any] = {}
    for option in options:
        if option.key not in values or option.default is not None:
            values[option.key] = () if option.repeats else option.default
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
        if option.takes is Takes.NOTHING:
            _take(values, option, None, left)
        else:
            _take(values, option, letters or None, left)
            return


def _named(options: Sequence[Option], name: str) -> Option:
    exact = [option for option in options if option.name == name]
    if exact:
        return exact[0]
    near = [option for option in options if option.name.startswith(name)]
    if not near:
        raise Usage(f"unrecognized option `--{name}'")
    if len(near) > 1:
        names = ", ".join(f"--{option.name}" for option in near)
        raise Usage(f"option `--{name}' is ambiguous; could be one of: {names}")
    return near[0]


def _take(values: dict[str, Any], option: Option, text: str | None, left: list[str]) -> None:
    if option.takes is Takes.NOTHING:
        if text is not None:
            raise Usage(f"option `--{option.name}' doesn't allow an argument")
        values[option.key] = values[option.key] + option.step if option.step else option.without
        return
    if text is None and option.takes is Takes.SOMETHING:
        if not left:
            raise Usage(f"option `--{option.name}' requires an argument {option.argument}")
        text = left.pop(0)
    value = option.without if text is None else option.read(text)
    values[option.key] = (*values[option.key], value) if option.repeats else value


def number(
    what: str, kind: Callable[[str], Any], *, positive: bool = False
) -> Callable[[str], Any]:
    """Make a reader of numbers; ``what`` names it when it cannot be read.

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

    return read


def yes_no(text: str) -> bool:
    """Read ``yes`` or ``no``."""
    if text not in {"yes", "no"}:
        raise InvalidRequest(f"Invalid choice '{text}', pass either 'yes' or 'no'")
    return text == "yes"
