"""What the documentation says of files, commands and codes is there."""

import re
import shlex
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from common.errors import InvalidRequest
from common.paths import Paths
from coordinator.cli.commands import AREAS
from coordinator.cli.refused import COMMANDS as REFUSED
from coordinator.operations.registry import load_all
from deploy.manpages import roff
from deploy.manpages.pages import exit_codes_of_errors, pages
from deploy.manpages.parsers import commands, daemons, parser_of, shown_actions
from deploy.manpages.tools import TOOLS, options_of
from deploy.manpages.words import DAEMONS, EXAMPLES, EXIT_CODES

PROJECT = Path(__file__).parents[2]
DOCUMENTS = sorted([PROJECT / "README.md", PROJECT / "CHANGELOG.md", *PROJECT.glob("docs/**/*.md")])
GUIDE = PROJECT / "docs/operators-guide.md"
RECORDS = sorted(PROJECT.glob("docs/adr/[0-9]*.md"))
PROGRAMS = ("gantry", *AREAS)
SCRIPTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]

_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"")
_CODE = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"[\w.-]+(/[\w.-]+)+/?")
_BLOCK = re.compile(r"^```(?:console|sh)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_PROMPT = re.compile(r"^\w*[#$] ")
_EXAMPLES = {  # the how-tos write these
    "common/model/network.py",
    "coordinator/operations/instance/recreate_disks.py",
    "coordinator/queries/network_fields.py",
}


parsed_by = cache(parser_of)
manual = cache(pages)


def named(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def links(document: Path) -> Iterator[str]:
    """Yield the targets of links and pictures that are files of ours."""
    for match in _LINK.finditer(document.read_text(encoding="utf-8")):
        target = match[1] or match[2]
        if "://" not in target:
            yield target


def headings(document: Path) -> set[str]:
    """Return the anchors that GitHub gives to headings."""
    found = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in found}


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the words of each of our commands in the blocks of a document."""
    for block in _BLOCK.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            if not _PROMPT.match(line):
                continue
            for part in re.split(r"\s[|;>&]+\s?", _PROMPT.sub("", line)):
                words = shlex.split(part, comments=True)
                if words and words[0] in PROGRAMS:
                    yield words


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document: Path) -> None:
    for target in links(document):
        path, _, anchor = target.partition("#")
        there = (document.parent / path) if path else document
        assert there.exists(), f"{named(document)} links to {target}"
        if anchor:
            assert anchor in headings(there), f"{target}: no such heading"


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_files_that_are_named_exist(document: Path) -> None:
    tops = {path.name for path in PROJECT.iterdir()} - {".cache", ".venv"}  # made, not kept
    for text in _CODE.findall(document.read_text(encoding="utf-8")):
        name = text.partition("::")[0]
        if not _PATH.fullmatch(name) or name.partition("/")[0] not in tops:
            continue
        if name not in _EXAMPLES:
            assert (PROJECT / name).exists(), f"{named(document)} names {text}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_commands_that_are_shown_can_be_given(document: Path) -> None:
    for words in command_lines(document.read_text(encoding="utf-8")):
        check_command(words)


def check_command(words: list[str]) -> None:
    program, name, *rest = words
    name = AREAS[program].aliases.get(name, name) if program in AREAS else name
    if program == "gantry" and f"gantry-{name}" not in EXAMPLES and f"gnt-{name}" in AREAS:
        return check_command([f"gnt-{name}", *rest])
    assert name in commands(program), shlex.join(words)
    try:
        parsed_by(program, name).parse_args(rest)
    except InvalidRequest as error:
        pytest.fail(f"{shlex.join(words)}: {error}")


def test_every_program_has_a_page() -> None:
    made = manual()
    ours = {f"{program}.8" for program in (*PROGRAMS, *daemons())}
    assert ours | {f"{tool}.1" for tool in TOOLS} == made.keys()
    assert {page.rpartition(".")[0] for page in made} == SCRIPTS.keys()
    for program in AREAS:
        for name in AREAS[program].commands:
            heading = f"\n.SS {name}\n".replace("-", "\\-")
            assert heading in made[f"{program}.8"], f"{program} {name}"


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_is_explained(program: str) -> None:
    for name in commands(program):
        for action in shown_actions(parsed_by(program, name)):
            assert action.help, f"{program} {name}: {action.option_strings or action.metavar}"


@pytest.mark.parametrize("tool", TOOLS)
def test_every_option_of_a_tool_is_explained(tool: str) -> None:
    page = manual()[f"{tool}.1"].replace("\\-", "-")
    for option in options_of(tool):
        assert f"\\fB--{option.name}\\fR" in page
        assert option.help, option.name


@pytest.mark.parametrize("program", PROGRAMS)
def test_examples_can_be_given(program: str) -> None:
    for command, _ in EXAMPLES[program]:
        check_command(shlex.split(command))


@pytest.mark.parametrize("command", REFUSED)
def test_every_command_of_ganetis_that_is_not_there_is_in_the_manual(command: str) -> None:
    program, _, name = command.partition(" ")
    _, heading, rest = manual()[f"{program}.8"].partition(".SH COMMANDS OF GANETI'S")
    assert heading, "it says nothing of any"
    told = rest.partition(".SH ")[0]
    assert roff.bold(name) in told
    assert roff.escaped(REFUSED[command]) in told


def test_every_exit_code_is_explained() -> None:
    load_all()
    assert exit_codes_of_errors() <= EXIT_CODES.keys()
    told = re.findall(r"^\| (\d+) \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert {int(code) for code in told} == EXIT_CODES.keys()


def test_every_finding_is_explained() -> None:
    folders = ("coordinator/checks", "coordinator/disks")
    codes = {
        code
        for folder in folders
        for source in (PROJECT / folder).glob("*.py")
        if source.name != "report.py"  # which knows all of Ganeti's
        for code in re.findall(r'"(E[A-Z]{6,})"', source.read_text(encoding="utf-8"))
    }
    told = set(re.findall(r"^\| `(E[A-Z]+)` \|", GUIDE.read_text(encoding="utf-8"), re.MULTILINE))
    assert told == codes


def test_every_file_of_a_node_is_explained() -> None:
    told = GUIDE.read_text(encoding="utf-8")
    paths = Paths("")
    names = [name for name, member in vars(Paths).items() if isinstance(member, property)]
    for path in (*(getattr(paths, name) for name in names), paths.logs):
        assert f"`{path}" in told, path
    for about in DAEMONS.values():
        for file, _ in about.files:
            assert f"`{file}" in told or file.startswith(str(paths.logs)), file


def test_decisions_are_numbered_and_listed() -> None:
    numbers = [int(path.name[:4]) for path in RECORDS]
    assert numbers == sorted(set(numbers))
    assert set(links(PROJECT / "docs/adr/README.md")) >= {path.name for path in RECORDS}


@pytest.mark.parametrize("record", RECORDS, ids=named)
def test_decisions_have_one_form(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    found = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert found == ["Context", "Decision", "Consequences"]
    assert text.startswith(f"# {int(record.name[:4])}. ")
