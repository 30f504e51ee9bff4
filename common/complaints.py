"""What a JSON library finds wrong, in words for an operator."""

import re

_PATH = re.compile(r"^(?P<told>.*?)(?: - at `(?P<where>[^`]*)`)?$", re.DOTALL)
_TYPES = {
    "int": "a whole number", "float": "a number", "str": "text", "bool": "true or false",
    "object": "an object", "array": "a list", "null": "nothing",
}  # fmt: skip
_BOUND = re.compile(r" ([<>]=?) (.*)")
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_PATTERNS = (
    (re.compile(r"Object contains unknown field `(?P<name>.*)`"), "there is no “{name}”{within}"),
    (re.compile(r"Object missing required field `(?P<name>.*)`"), "“{name}” is missing{within}"),
    (
        re.compile(r"Expected `(?P<wanted>.*)`, got `(?P<found>.*)`"),
        "{here} is {wanted}, not {found}",
    ),
    (re.compile(r"Expected `str` matching regex '(?P<form>.*)'"), "{here} does not fit “{form}”"),
    (re.compile(r"Expected `(?P<wanted>[^`]*)`(?P<rest> .*)?"), "{here} is {wanted}{rest}"),
    (re.compile(r"Invalid enum value (?P<value>.*)"), "{here} cannot be {value}"),
)


def in_words(complaint: str) -> str:
    """Return msgspec's words as a clause that names what is wrong; others as they are.

    Their form: ``Expected `int`, got `str` - at `$.disks[0].size```.
    """
    match = _PATH.match(complaint)
    told = match["told"] if match else complaint
    where = ((match and match["where"]) or "").removeprefix("$").removeprefix(".")
    for pattern, sentence in _PATTERNS:
        if found := pattern.fullmatch(told):
            words = {key: value or "" for key, value in found.groupdict().items()}
            words |= {key: _type(words[key]) for key in ("wanted", "found") if key in words}
            if bound := _BOUND.fullmatch(words.get("rest", "")):
                words["rest"] = f", {_BOUNDS[bound[1]]} {bound[2]}"
            within = f" in {where}" if where else ""
            return sentence.format(here=where or "it", within=within, **words)
    return f"{where}: {told}" if where else told


def _type(text: str) -> str:
    """``int | null`` as "a whole number or nothing"."""
    return " or ".join(_TYPES.get(kind, kind) for kind in text.split(" | "))
