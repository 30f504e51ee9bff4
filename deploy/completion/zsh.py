"""Completion for zsh."""

from collections.abc import Iterator

from deploy.completion.table import APOSTROPHE, Option, Table, area_names

_FUNCTION = r"""#compdef @PROGRAMS@
# Completion of Gantry's commands for zsh. Made by deploy/completion.

local program=$service at=2
local -a commands options names
if [[ $program == gantry && $CURRENT -gt 2 ]]; then
    case ${words[2]} in
    @AREAS@) program=gnt-${words[2]} at=3 ;;
    esac
fi
local command=${words[at]} previous=${words[CURRENT - 1]} wanted='' values=''
case $program in
@COMMANDS@
esac
case "$program $command" in
@LINES@
esac
if ((CURRENT == at)); then
    _describe command commands
    return
fi
[[ -z $values ]] || wanted=$values
if [[ -z $values && ${words[CURRENT]} == -* ]]; then
    _describe option options
    return
fi
case $wanted in
@files) _files ;;
@instances) names=(${(f)"$(gnt-instance list --no-headers -o name 2>/dev/null)"}) ;;
@nodes) names=(${(f)"$(gnt-node list --no-headers -o name 2>/dev/null)"}) ;;
@jobs) names=(${(f)"$(gnt-job list --no-headers -o id 2>/dev/null)"}) ;;
*) names=(${(s: :)wanted}) ;;
esac
compadd -a names
"""


def zsh_script(table: Table) -> str:
    """Return the function that zsh loads for all programs."""
    text = _FUNCTION.replace("@PROGRAMS@", " ".join(table))
    text = text.replace("@AREAS@", " | ".join(area_names()))
    text = text.replace("@COMMANDS@", "\n".join(_commands(table)))
    return text.replace("@LINES@", "\n".join(_lines(table)))


def _commands(table: Table) -> Iterator[str]:
    for program, lines in table.items():
        told = {name: line.help for name, line in lines.items()}
        if program == "gantry":
            told |= {area: f"see {name}" for area, name in area_names().items()}
        entries = " ".join(_entry(name, text) for name, text in told.items())
        yield f"{program}) commands=({entries}) ;;"


def _lines(table: Table) -> Iterator[str]:
    for program, lines in table.items():
        for name, line in lines.items():
            yield f"'{program} {name}')"
            yield f"    options=({' '.join(_options(line.options))}) wanted={_quoted(line.words)}"
            valued = [option for option in line.options if option.values]
            if valued:
                yield "    case $previous in"
                for option in valued:
                    flags = " | ".join(option.flags)
                    yield f"    {flags}) values={_quoted(option.values or ())} ;;"
                yield "    esac"
            yield "    ;;"


def _options(options: tuple[Option, ...]) -> Iterator[str]:
    for option in options:
        yield from (_entry(flag, option.help) for flag in option.flags)


def _entry(name: str, text: str) -> str:
    """``'name:text'``, as _describe wants it."""
    return "'" + f"{name.replace(':', chr(92) + ':')}:{text}".replace("'", APOSTROPHE) + "'"


def _quoted(words: tuple[str, ...]) -> str:
    return "'" + " ".join(words) + "'"
