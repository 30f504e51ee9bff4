"""Debian's commands and their options, and which of them we have, as a page says it."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from coordinator.cli.commands import AREAS, UMBRELLA
from coordinator.cli.refused import ANY, COMMANDS, OPTIONS
from deploy.manpages.parsers import parser_of
from tests.diff.debian_ganeti import needs_ganeti, options_of_commands, spellings_of_commands
from tests.support.golden import check_golden

pytestmark = needs_ganeti

PAGE = Path(__file__).parents[2] / "docs/status-commands.md"


def test_each_of_debians_commands_is_told_with_the_options_that_are_missing(
    update_golden: bool,
) -> None:
    check_golden(PAGE, "\n".join(_page(options_of_commands())) + "\n", update=update_golden)


def test_an_option_of_debians_that_is_not_obeyed_is_refused_by_name() -> None:
    theirs = options_of_commands()
    for program, area in AREAS.items():
        for name in area.commands:
            known = parser_of(program, name)._option_string_actions
            options = theirs.get(f"{program} {name}", ())
            assert [option for option in options if option not in known] == [], name


def test_every_spelling_of_debians_commands_and_options_is_known() -> None:
    lacking = []
    for command, options in spellings_of_commands().items():
        program, _, name = command.partition(" ")
        name = AREAS[program].aliases.get(name, name)
        if name not in AREAS[program].commands:
            assert command in COMMANDS, f"{command} is neither there nor refused by name"
            continue
        known = parser_of(program, name)._option_string_actions
        for flags in options:
            meant = {known[flag].dest for flag in flags if flag in known}
            if len(meant) != 1 or not set(flags) <= known.keys():
                lacking.append(f"{command} {'/'.join(flags)}")
    assert lacking == []


def _page(theirs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    ours = [f"{program} {name}" for program, area in AREAS.items() for name in area.commands]
    refused = {command: _refused(command, theirs[command]) for command in ours if command in theirs}
    whole = [command for command in refused if not refused[command]]
    yield "# Commands"
    yield ""
    yield "Ganeti's commands: `yes` with all options, `partly` where some are refused by name, as"
    yield "told below with the reason; `no` where the command itself is. This page is written by"
    yield "`tests/diff/test_status_of_commands.py`; see [the status](status.md) of all."
    yield ""
    yield f"Of {len(theirs)} commands {len(whole)} are there with all options,"
    yield f"and {len(refused) - len(whole)} without some."
    yield ""
    yield "| Command | State | Options that are refused |"
    yield "|---|---|---|"
    for command in sorted(theirs):
        state = "yes" if command in whole else "partly" if command in refused else "no"
        options = " ".join(f"`{option}`" for option in refused.get(command, ()))
        yield f"| `{command}` | {state} | {options} |"
    yield ""
    yield "What is refused, and why:"
    yield ""
    reasons: dict[tuple[str, str], list[str]] = {}
    for command, several in refused.items():
        for option in several:
            reasons.setdefault((option, OPTIONS[command][option].why), []).append(f"`{command}`")
    for (option, why), those in sorted(reasons.items()):
        yield f"- `{option}` of {', '.join(those)}: {why}"
    for command, why in sorted(COMMANDS.items()):
        yield f"- `{command}`: {why}"
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


def _refused(command: str, options: Sequence[str]) -> list[str]:
    """Return the options that are refused; not those that ask for nothing here, whatever they say.

    There is no other that is missing: a test says so.
    """
    rules = OPTIONS.get(command, {})
    return [option for option in options if option in rules and ANY not in rules[option].harmless]
