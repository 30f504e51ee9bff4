"""Debian's commands and their options, and which of them we have, as a page says it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coordinator.cli.commands import AREAS, UMBRELLA
from coordinator.cli.refused import OPTIONS, RefusedOption
from deploy.manpages.parsers import parser_of
from tests.diff.debian_ganeti import needs_ganeti, options_of_commands
from tests.support.golden import check_golden

pytestmark = needs_ganeti

PAGE = Path(__file__).parents[2] / "docs/status-commands.md"


def test_each_of_debians_commands_is_told_with_the_options_that_are_missing(
    update_golden: bool,
) -> None:
    check_golden(PAGE, "\n".join(_page(options_of_commands())) + "\n", update=update_golden)


def test_an_option_of_debians_that_is_not_obeyed_is_refused_by_name() -> None:
    theirs = options_of_commands()
    for command in OPTIONS:
        program, _, name = command.partition(" ")
        ours = parser_of(program, name)._option_string_actions
        assert [option for option in theirs[command] if option not in ours] == []


def _page(theirs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    ours = [f"{program} {name}" for program, area in AREAS.items() for name in area.commands]
    missing = {command: _missing(command, theirs[command]) for command in ours if command in theirs}
    whole = [command for command in missing if not missing[command]]
    yield "# Commands"
    yield ""
    yield "Ganeti's commands: `yes` with all options, `partly` without some. This page is written"
    yield "by `tests/diff/test_status_of_commands.py`; see [the status](status.md) of all."
    yield ""
    yield f"Of {len(theirs)} commands {len(whole)} are there with all options,"
    yield f"and {len(missing) - len(whole)} without some."
    yield ""
    yield "| Command | State | Options that are missing |"
    yield "|---|---|---|"
    for command in sorted(theirs):
        state = "yes" if command in whole else "partly" if command in missing else "no"
        options = " ".join(f"`{option}`" for option in missing.get(command, ()))
        yield f"| `{command}` | {state} | {options} |"
    yield ""
    yield "And ours:"
    yield ""
    yield "| Command | State | What it is for |"
    yield "|---|---|---|"
    for program, area in AREAS.items():
        for name, about in area.commands.items():
            if f"{program} {name}" not in theirs:
                yield f"| `{program} {name}` | ours | {about.help} |"
    for name, about in UMBRELLA.items():
        yield f"| `gantry {name}` | ours | {about.help} |"


def _missing(command: str, options: Sequence[str]) -> list[str]:
    program, _, name = command.partition(" ")
    ours = parser_of(program, name)._option_string_actions
    return [option for option in options if isinstance(ours.get(option), RefusedOption | None)]
