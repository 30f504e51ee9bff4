"""Entry points of the commands: find the command, run it, say what went wrong."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module

from common.errors import GntError, InvalidRequest
from common.luxi.client import NoCoordinator
from common.version import VERSION
from coordinator.cli.commands import AREAS, UMBRELLA, Area, Command
from coordinator.cli.output import printable_output
from coordinator.operations.catalogue import Entry

INTERRUPTED = 130  # as shells report SIGINT
PIPE_CLOSED = 141  # as shells report SIGPIPE
ALIKE = 0.7  # of 1, for a guess: whoever asks for “rename” shall not be shown “remove”


def gnt_cluster() -> int:
    return _area("gnt-cluster")


def gnt_node() -> int:
    return _area("gnt-node")


def gnt_group() -> int:
    return _area("gnt-group")


def gnt_network() -> int:
    return _area("gnt-network")


def gnt_instance() -> int:
    return _area("gnt-instance")


def gnt_backup() -> int:
    return _area("gnt-backup")


def gnt_job() -> int:
    return _area("gnt-job")


def gnt_filter() -> int:
    return _area("gnt-filter")


def gnt_os() -> int:
    return _area("gnt-os")


def gnt_storage() -> int:
    return _area("gnt-storage")


def gnt_debug() -> int:
    return _area("gnt-debug")


def gantry() -> int:
    """``gantry instance list`` is ``gnt-instance list``; and some commands of its own."""
    return guarded(lambda: run_umbrella(sys.argv[1:]))


def run_umbrella(words: Sequence[str]) -> int:
    """Run ``gantry`` with these words after it; return the exit code."""
    name, rest = (words[0], words[1:]) if words else ("--help", ())
    if name == "--version":
        print(f"gantry {VERSION}")
        return 0
    if name in ("-h", "--help"):
        print("Usage: gantry AREA COMMAND …\n\nAreas and commands:")
        rows = {area.removeprefix("gnt-"): told.help for area, told in AREAS.items()}
        _print_commands(rows | {name: told.help for name, told in UMBRELLA.items()})
        return 0
    if name in UMBRELLA:
        return run_command(f"gantry {name}", UMBRELLA[name], rest)
    if f"gnt-{name}" in AREAS:
        return run_area(f"gnt-{name}", rest)
    areas = [area.removeprefix("gnt-") for area in AREAS]
    raise InvalidRequest(
        f"There is no “gantry {name}”{_guess(name, [*areas, *UMBRELLA], 'gantry')}"
    )


def run_area(program: str, words: Sequence[str]) -> int:
    """Run ``program``, as "gnt-node", with these words after it; return the exit code."""
    area = AREAS[program]
    name, rest = (words[0], words[1:]) if words else ("--help", ())
    name = area.aliases.get(name, name)
    if name == "--version":
        print(f"{program} (Gantry) {VERSION}")
        return 0
    if name in ("-h", "--help"):
        _print_area(program, area)
        return 0
    if name not in area.commands:
        from coordinator.cli.refused import COMMANDS

        if why := COMMANDS.get(f"{program} {name}"):
            raise InvalidRequest(f"“{program} {name}” is Ganeti's and not there. {why}")
        known = [*area.commands, *area.aliases]
        raise InvalidRequest(f"There is no “{program} {name}”{_guess(name, known, program)}")
    return run_command(f"{program} {name}", area.commands[name], rest)


def run_command(name: str, command: Command | Entry, words: Sequence[str]) -> int:
    """Import what the command needs, and run it."""
    if isinstance(command, Entry):
        from coordinator.cli.submit import submit  # imports the model; lists do without

        return submit(name, command, words)
    module, _, function = command.run.partition(":")
    run: Callable[[str, Sequence[str]], int]
    run = getattr(import_module(f"coordinator.cli.{module}"), function)
    return run(name, words)


def _guess(word: str, known: Sequence[str], program: str) -> str:
    """Return the end of a sentence: what was meant perhaps, or where all are listed."""
    from difflib import get_close_matches  # only now is it worth the import

    near = get_close_matches(word, known, n=1, cutoff=ALIKE)
    return f"; did you mean “{near[0]}”?" if near else f"; see “{program} --help”."


def guarded(run: Callable[[], int]) -> int:
    """Run a command; whatever goes wrong becomes a sentence on stderr and an exit code."""
    with printable_output():
        return _guarded(run)


def _guarded(run: Callable[[], int]) -> int:
    try:
        code = run()
        sys.stdout.flush()
    except NoCoordinator as error:
        from coordinator.cli.whereabouts import explain  # only now is it worth looking

        return _fail(explain(error))
    except GntError as error:
        return _fail(error)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has gone
        _drop_what_cannot_be_written()
        return PIPE_CLOSED
    except PermissionError as error:
        print(f"Failure: This user may not use {error.filename}; do it as root.", file=sys.stderr)
        return InvalidRequest.exit_code
    except OSError as error:
        _drop_what_cannot_be_written()
        about = f"{error.filename}: " if error.filename else ""
        print(f"Failure: {about}{error.strerror or error}.", file=sys.stderr)
        return 1
    except Exception as error:  # noqa: BLE001 -- an operator gets a sentence, whatever it is
        return _fail_unexpectedly(error)
    return code


def _drop_what_cannot_be_written() -> None:
    """Forget output that is left over; Python would complain when it flushes at the end."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _area(program: str) -> int:
    return guarded(lambda: run_area(program, sys.argv[1:]))


def _fail(error: GntError) -> int:
    from coordinator.cli.telling import print_failure

    print_failure(error)
    return error.exit_code


def _fail_unexpectedly(error: Exception) -> int:
    if os.environ.get("GANTRY_DEBUG"):
        raise error
    while isinstance(error, ExceptionGroup):  # of tasks that ran side by side; one will do
        error = error.exceptions[0]
    if isinstance(error, GntError):
        return _fail(error)
    told = f"{type(error).__name__}: {error}"
    print(
        f"Failure: This is a bug of Gantry: {told}. Set GANTRY_DEBUG=1 to see where.",
        file=sys.stderr,
    )
    return 70


def _print_area(program: str, area: Area) -> None:
    print(f"{program}: {area.help}.\n\nUsage: {program} COMMAND …\n\nCommands:")
    _print_commands({name: command.help for name, command in area.commands.items()})
    print(f"\n“{program} COMMAND --help” tells more.")


def _print_commands(rows: dict[str, str]) -> None:
    width = max(map(len, rows))
    for name, text in rows.items():
        print(f"  {name:{width}}  {text}")
