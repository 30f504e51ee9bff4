"""Filters as people type them, turned into what goes over the wire.

    status == "running" and (pnode =~ m/^a/ or not oper_ram < 512)
    "db" in tags        name =* "web*"        admin_up

Conditions are ``field OP value`` with == != < <= > >=, ``field =~ m/re/is`` and ``!~``
(delimiters / # ^ |, the m before / may be left out), ``field =* "glob"`` and ``!*``
(*, ? and [a-c] within a name's part), ``value in field`` and ``value not in field``, or a bare
field. They are joined by and, or, not, and parentheses. Values are quoted text or numbers.

Source: Ganeti's design document on queries, query2.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from common.errors import InvalidRequest

_DEEPEST = 40
_MARKS_A_FILTER = frozenset("()=/!~'\"\\ \t\r\n")
_MARKS_A_GLOB = frozenset("*?[")
_GLOB = re.compile(r"\*|\?|\[(!?)([^\]]+)\]|.", re.DOTALL)
_RANGE = re.compile(r"(.)-(.)|.", re.DOTALL)
_NEVER = "$."  # nothing comes after the end
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<pattern>m(?P<mark>[/\#^|])(?:\\.|(?!(?P=mark)).)*(?P=mark)[a-z]*
      | /(?:\\.|[^/\\])*/[a-z]*)
    | (?P<number>[-+]?\d+(?:\.\d+)?(?![\w./]))
    | (?P<word>[A-Za-z0-9_][\w./-]*)
    | (?P<sign>==|!=|<=|>=|=~|!~|=\*|!\*|=|<|>|\(|\))
    | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def name_filter(arguments: Sequence[str], key: str, *, force: bool, numeric: bool = False) -> Any:
    """Return the filter that a list command's arguments stand for.

    Args:
        arguments: names, globs, or one filter.
        key: the field that has the name.
        force: the one argument is a filter, even if it looks like a name.
        numeric: names are numbers.

    Raises:
        InvalidRequest: not a filter, or not a number.
    """
    if is_filter(arguments, force=force):
        if len(arguments) != 1:
            raise InvalidRequest("Give the filter as one argument, in quotes.")
        return parse(arguments[0])
    if not arguments:
        return None
    return ["|", *(_names(argument, key, numeric) for argument in arguments)]


def is_filter(arguments: Sequence[str], *, force: bool) -> bool:
    """Tell whether a list command's arguments are a filter rather than names."""
    return force or (len(arguments) == 1 and bool(_MARKS_A_FILTER & set(arguments[0])))


def is_glob(word: str) -> bool:
    """Tell whether a word stands for several names."""
    return bool(_MARKS_A_GLOB & set(word))


def parse(text: str) -> list[Any]:
    """Read a filter.

    Raises:
        InvalidRequest: what is wrong with it, and where.
    """
    return _Parser(text).whole()


def glob_pattern(glob: str) -> str:
    """Return the regular expression for a glob on a name; ``web*`` also finds web1.example.com."""
    return "^" + "".join(map(_glob_part, _GLOB.finditer(glob))) + r"(\..*)?$"


def _glob_part(found: re.Match[str]) -> str:
    match found[0]:
        case "*":
            return "[^.]*"
        case "?":
            return "[^.]"
        case _ if found[2] is not None:
            within = "".join(map(_range_or_letter, _RANGE.finditer(found[2])))
            if not (found[1] or within):
                return _NEVER
            return f"[{'^.' if found[1] else ''}{within}]"
        case text:
            return re.escape(text)


def _range_or_letter(found: re.Match[str]) -> str:
    """Read a part of what stands in brackets; a range that runs backwards stands for nothing."""
    if found[1] is None:
        return _escaped(found[0])
    return f"{_escaped(found[1])}-{_escaped(found[2])}" if found[1] <= found[2] else ""


def _escaped(letter: str) -> str:
    return f"\\{letter}" if letter in r"\^[&~|-" else letter


def _names(argument: str, key: str, numeric: bool) -> list[Any]:
    if numeric:
        if not argument.isascii() or not argument.isdigit():
            raise InvalidRequest(f"“{argument}” is no number.")
        return ["==", key, int(argument)]
    if is_glob(argument):
        return ["=~", key, glob_pattern(argument)]
    return ["==", key, argument]


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self._at = self._read(0)

    def whole(self) -> list[Any]:
        condition = self._alternatives()
        if self._at.kind != "end":
            raise self._unexpected("“and”, “or” or the end")
        return condition

    def _alternatives(self) -> list[Any]:
        return self._joined("or", "|", lambda: self._joined("and", "&", self._negation))

    def _joined(self, word: str, sign: str, part: Any) -> list[Any]:
        parts = [part()]
        while self._takes("word", word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else [sign, *parts]

    def _negation(self) -> list[Any]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidRequest(f"The filter is nested more than {_DEEPEST} levels deep.")
        if self._takes("word", "not"):
            condition = ["!", self._negation()]
        elif self._takes("sign", "("):
            condition = self._alternatives()
            if not self._takes("sign", ")"):
                raise self._unexpected("“)”")
        else:
            condition = self._condition()
        self._depth -= 1
        return condition

    def _condition(self) -> list[Any]:
        if self._at.kind in ("text", "number"):
            value = self._value()
            negated = self._takes("word", "not")
            if not self._takes("word", "in"):
                raise self._unexpected("“in” or “not in”")
            condition = ["=[]", self._field(), value]
            return ["!", condition] if negated else condition
        field = self._field()
        match self._at:
            case _Token("sign", "==" | "=" | "!=" | "<" | "<=" | ">" | ">=" as sign):
                self._next()
                return ["==" if sign == "=" else sign, field, self._value()]
            case _Token("sign", "=~" | "!~" as sign):
                self._next()
                condition = ["=~", field, self._pattern()]
            case _Token("sign", "=*" | "!*" as sign):
                self._next()
                condition = ["=~", field, glob_pattern(self._quoted())]
            case _:
                return ["?", field]
        return ["!", condition] if sign[0] == "!" else condition

    def _field(self) -> str:
        if self._at.kind != "word" or self._at.text in ("and", "or", "not", "in"):
            raise self._unexpected("the name of a field")
        return self._next().text

    def _value(self) -> str | int | float:
        if self._at.kind == "number":
            text = self._next().text
            return float(text) if "." in text else int(text)
        return self._quoted()

    def _quoted(self) -> str:
        if self._at.kind != "text":
            raise self._unexpected("text in quotes, or a number")
        return re.sub(r"\\(.)", r"\1", self._next().text[1:-1], flags=re.DOTALL)

    def _pattern(self) -> str:
        if self._at.kind == "text":
            return self._quoted()
        if self._at.kind != "pattern":
            raise self._unexpected("a pattern as in m/^web/i")
        start = self._at.start
        literal = self._next().text.removeprefix("m")
        body, _, flags = literal[1:].rpartition(literal[0])
        if set(flags) - set("is"):
            raise InvalidRequest(
                f"The pattern at character {start + 1} has the flags “{flags}”; known are i and s."
            )
        body = body.replace("\\" + literal[0], literal[0])
        return f"(?{''.join(sorted(set(flags)))}){body}" if flags else body

    def _takes(self, kind: str, text: str) -> bool:
        if (self._at.kind, self._at.text) != (kind, text):
            return False
        self._next()
        return True

    def _next(self) -> _Token:
        token = self._at
        if token.kind != "end":
            self._at = self._read(token.start + len(token.text))
        return token

    def _read(self, start: int) -> _Token:
        match = _TOKEN.match(self._text, start)
        if match is None:
            rest = self._text[start:].lstrip()
            raise InvalidRequest(f"The filter cannot be read from “{rest[:30]}” on.")
        kind = next(
            k for k in ("text", "pattern", "number", "word", "sign", "end") if match[k] is not None
        )
        return _Token(kind, match[kind], match.start(kind))

    def _unexpected(self, wanted: str) -> InvalidRequest:
        found = f"“{self._at.text}”" if self._at.text else "the end"
        return InvalidRequest(
            f"The filter is wrong at character {self._at.start + 1}: {wanted} should be there, "
            f"not {found}."
        )
