"""Completion for fish: one ``complete`` for each thing that can be typed."""

from collections.abc import Iterator

from deploy.completion.table import APOSTROPHE, Line, Table, area_names

_LISTS = {
    "@instances": "(gnt-instance list --no-headers -o name 2>/dev/null)",
    "@nodes": "(gnt-node list --no-headers -o name 2>/dev/null)",
    "@jobs": "(gnt-job list --no-headers -o id 2>/dev/null)",
    "@fields": "",
}


def fish_script(program: str, table: Table) -> str:
    """Return what fish reads for one program."""
    lines = [f"# Completion of {program} for fish. Made by deploy/completion.", _none(program)]
    told = {name: line.help for name, line in table[program].items()}
    if program == "gantry":
        told |= {area: f"see {name}" for area, name in area_names().items()}
    first = _when("__fish_use_subcommand")
    lines += [
        f"complete -c {program} {first} -a {name} -d {_quoted(h)}" for name, h in told.items()
    ]
    for name, line in table[program].items():
        lines += _of(program, name, line)
    return "\n".join(lines) + "\n"


def _of(program: str, name: str, line: Line) -> Iterator[str]:
    begin = f"complete -c {program} {_when(f'__fish_seen_subcommand_from {name}')}"
    if line.words:
        yield f"{begin} {_values(line.words)}"
    for option in line.options:
        flags = " ".join(
            f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags
        )
        values = "" if option.values is None else f" {_values(option.values) or '-r'}"
        yield f"{begin} {flags} -d {_quoted(option.help)}{values}"


def _values(values: tuple[str, ...]) -> str:
    if values == ("@files",):
        return "-F"
    words = " ".join(_LISTS.get(value, value) for value in values)
    return f"-x -a {_quoted(words)}" if words else ""


def _none(program: str) -> str:
    return f"complete -c {program} -f"


def _when(condition: str) -> str:
    return f"-n {_quoted(condition)}"


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", APOSTROPHE) + "'"
