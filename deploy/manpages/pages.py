"""The pages: what is the same on all of them, and what is said about each program."""

from collections.abc import Callable, Iterator

import msgspec

from common.errors import GntError
from common.messages import Order
from common.model.kvm import KvmParameters
from common.model.parameters import Backend
from common.paths import Paths
from common.version import VERSION
from coordinator.cli.commands import AREAS, UMBRELLA
from coordinator.cli.refused import COMMANDS
from deploy.manpages import roff
from deploy.manpages.parameters import meanings
from deploy.manpages.parsers import commands, daemons, parser_of
from deploy.manpages.tools import tool_pages
from deploy.manpages.words import DAEMONS, EXAMPLES, EXIT_CODES, INTRODUCTIONS


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    made = {program: _area(program) for program in AREAS}
    made["gantry"] = _umbrella()
    made |= {program: _daemon(program) for program in daemons()}
    return {f"{program}.8": text for program, text in sorted(made.items())} | tool_pages()


def _area(program: str) -> str:
    area = AREAS[program]
    text = _head(program, area.help)
    text += f".SH SYNOPSIS\n{roff.bold(program)} {roff.italic('COMMAND')} [...]\n"
    text += roff.section("DESCRIPTION", INTRODUCTIONS[program])
    text += ".SH COMMANDS\n" + "".join(_command(program, name) for name in area.commands)
    if area.aliases:
        told = (f"{alias} is {name}" for alias, name in area.aliases.items())
        text += roff.section("OTHER NAMES", [roff.sentence(", ".join(told))])
    if absent := dict(_absent(program)):
        rows = ((roff.bold(name), why) for name, why in absent.items())
        text += f".SH COMMANDS OF GANETI'S THAT ARE NOT THERE\n{roff.items(rows)}"
    if program == "gnt-instance":
        text += _parameters("HYPERVISOR PARAMETERS", KvmParameters, "-H, for the hypervisor kvm")
        text += _parameters("BACK-END PARAMETERS", Backend, "-B; memory sets maxmem and minmem")
    return text + _examples(program) + _tail(program, _exit_codes)


def _absent(program: str) -> Iterator[tuple[str, str]]:
    """Yield Ganeti's commands that a program refuses by name, and what is done instead."""
    for command, why in COMMANDS.items():
        area, _, name = command.partition(" ")
        if area == program:
            yield name, why


def _parameters(title: str, kind: type[Order], what: str) -> str:
    """Return the names that an option knows, what they mean, and their defaults."""
    words = meanings(kind)
    rows = (
        (roff.bold(field.name), f"{words[field.name]} Default: {_shown(field.default)}.")
        for field in msgspec.structs.fields(kind)
    )
    return f".SH {title}\n{roff.escaped(f'Given with {what}.')}\n{roff.items(rows)}"


def _shown(default: object) -> str:
    match default:
        case bool():
            return "yes" if default else "no"
        case "":
            return "none"
        case _:
            return str(default)


def _umbrella() -> str:
    text = _head("gantry", "all commands of Gantry under one name")
    usage = f"{roff.italic('AREA')} {roff.italic('COMMAND')} [...]"
    text += f".SH SYNOPSIS\n{roff.bold('gantry')} {usage}\n"
    text += roff.section("DESCRIPTION", INTRODUCTIONS["gantry"])
    areas = ((f"{name.removeprefix('gnt-')}", area) for name, area in AREAS.items())
    text += ".SH AREAS\n" + roff.items(
        (roff.bold(name), roff.sentence(f"{area.help}; see gnt-{name}(8)")) for name, area in areas
    )
    text += ".SH COMMANDS\n" + "".join(_command("gantry", name) for name in UMBRELLA)
    return text + _examples("gantry") + _tail("gantry", _exit_codes)


def _daemon(program: str) -> str:
    parser, about = daemons()[program], DAEMONS[program]
    text = _head(program, about.name)
    text += f".SH SYNOPSIS\n{roff.synopsis(parser)}"
    text += roff.section("DESCRIPTION", about.description)
    text += ".SH OPTIONS\n" + roff.options(parser)
    text += ".SH FILES\n" + roff.items((roff.italic(p), t) for p, t in about.files)
    text += ".SH SIGNALS\n" + roff.items((roff.bold(s), t) for s, t in about.signals)
    return text + _tail(program, _exit_codes)


def _head(program: str, what: str) -> str:
    title = f'.TH {program.upper()} 8 "" "Gantry {VERSION}" "Gantry"\n'
    return f"{title}.nh\n.ad l\n.SH NAME\n{roff.escaped(program)} \\- {roff.escaped(what)}\n"


def _command(program: str, name: str) -> str:
    parser = parser_of(program, name)
    told = roff.sentence(parser.description or commands(program)[name].help)
    return (
        f".SS {roff.escaped(name)}\n{roff.synopsis(parser)}.PP\n{roff.escaped(told)}\n"
        f"{roff.options(parser)}"
    )


def _examples(program: str) -> str:
    told = "".join(roff.example(command, what) for command, what in EXAMPLES[program])
    return f".SH EXAMPLES\n{told}"


def _exit_codes() -> Iterator[tuple[str, str]]:
    for code, meaning in EXIT_CODES.items():
        yield roff.bold(str(code)), meaning


def _tail(program: str, codes: Callable[[], Iterator[tuple[str, str]]]) -> str:
    environment = [
        (
            roff.bold("GANTRY_ROOT"),
            f"Goes before every path, as in $GANTRY_ROOT{Paths('').state}, so that several nodes "
            "can live on one machine.",
        ),
        (roff.bold("GANTRY_DEBUG"), "If set, a command that hits a bug shows where."),
        (roff.bold("NO_COLOR"), "If set, nothing is coloured, on a terminal neither."),
    ]
    if program in daemons():
        told = (
            "If it is json, the log has an object a line, for programs. /etc/default/gantry is the "
            "place to say so for all daemons of the machine."
        )
        environment.append((roff.bold("GANTRY_LOG_FORMAT"), told))
    if program in ("gnt-instance", "gnt-node"):
        name = program.upper().replace("-", "_") + "_LIST"
        environment.append((roff.bold(name), "The fields that list shows without -o."))
    others = sorted({*AREAS, "gantry", *daemons()} - {program})
    return (
        f".SH EXIT STATUS\n{roff.items(codes())}"
        f".SH ENVIRONMENT\n{roff.items(environment)}"
        f".SH SEE ALSO\n{', '.join(f'{roff.bold(other)}(8)' for other in others)}\n"
    )


def exit_codes_of_errors() -> set[int]:
    """Return the codes that our errors may end a command with."""
    return {kind.exit_code for kind in GntError.by_code.values()} | {GntError.exit_code}
