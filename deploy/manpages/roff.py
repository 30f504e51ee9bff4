"""Text as roff, for man(7)."""

import argparse
from collections.abc import Iterable, Iterator

from deploy.manpages.parsers import shown_actions


def escaped(text: str) -> str:
    """Return plain text as roff reads it.

    A dash is written so that it can be copied from a page and typed.
    """
    told = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line[:1] in (".", "'") else line for line in told.split("\n"))


def bold(text: str) -> str:
    return f"\\fB{escaped(text)}\\fR"


def italic(text: str) -> str:
    return f"\\fI{escaped(text)}\\fR"


def sentence(text: str) -> str:
    """Return a fragment as a sentence: a capital first, a full stop last; a pattern as it is."""
    if "=" in text.partition(" ")[0]:
        return text
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "?", "!")) else ".")


def section(title: str, paragraphs: Iterable[str]) -> str:
    """Return a section; the paragraphs are plain text."""
    return f".SH {title}\n" + ".PP\n".join(f"{escaped(text)}\n" for text in paragraphs)


def items(rows: Iterable[tuple[str, str]]) -> str:
    """Return a list of terms, which are roff already, with what they mean, which is plain."""
    return "".join(f".TP\n{term}\n{escaped(text)}\n" for term, text in rows)


def example(command: str, what: str) -> str:
    return f".PP\n{escaped(what)}\n.PP\n.RS\n.nf\n{escaped(command)}\n.fi\n.RE\n"


def synopsis(parser: argparse.ArgumentParser) -> str:
    """Return one line: the command, its arguments, and whether it has options."""
    words = [bold(parser.prog)]
    words += [
        _spelled(action)
        for action in shown_actions(parser)
        if action.required and action.option_strings
    ]
    if any(a.option_strings and not a.required for a in shown_actions(parser)):
        words.append(f"[{italic('OPTION')} ...]")
    words += [_argument(action) for action in shown_actions(parser) if not action.option_strings]
    return " ".join(words) + "\n"


def options(parser: argparse.ArgumentParser) -> str:
    """Return every argument and option with its meaning."""
    return items((_term(action), _meaning(action)) for action in shown_actions(parser))


def _term(action: argparse.Action) -> str:
    if not action.option_strings:
        return _argument(action)
    value = "" if action.nargs == 0 else f" {italic(_value(action))}"
    return ", ".join(bold(flag) for flag in action.option_strings) + value


def _meaning(action: argparse.Action) -> str:
    told = sentence(action.help or "")
    return f"{told} It has to be given." if action.option_strings and action.required else told


def _spelled(action: argparse.Action) -> str:
    return f"{bold(action.option_strings[-1])} {italic(_value(action))}"


def _argument(action: argparse.Action) -> str:
    name = italic(_value(action))
    match action.nargs:
        case "*":
            return f"[{name} ...]"
        case "+":
            return f"{name} ..."
        case "?":
            return f"[{name}]"
        case _:
            return name


def _value(action: argparse.Action) -> str:
    return "|".join(_values(action)) or action.dest.upper()


def _values(action: argparse.Action) -> Iterator[str]:
    if isinstance(action.metavar, str):
        yield action.metavar
    elif action.choices is not None:
        yield from map(str, action.choices)
