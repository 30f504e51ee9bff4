"""Every command is reached, and says what it has done."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from common.model.policy import InstancePolicy
from common.paths import Paths
from common.version import VERSION
from coordinator.cli import main
from coordinator.cli.commands import AREAS, UMBRELLA, Command
from coordinator.cli.init import parser_of, read_wanted
from coordinator.operations.catalogue import Entry
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

CHECKOUT = Path(__file__).parents[3]


def test_the_programs_are_those_of_the_package() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
    for name, target in project["scripts"].items():
        module, _, function = target.partition(":")
        if module == "coordinator.cli.main":
            assert callable(getattr(main, function))
            assert name == "gantry" or name in AREAS


def test_help_names_every_command(run: Run) -> None:
    for program, area in AREAS.items():
        told = run(program)
        assert told.code == 0
        assert all(f"\n  {name} " in told.out for name in area.commands)
    told = run("gantry --help")
    assert all(f"\n  {name} " in told.out for name in UMBRELLA)
    assert run("gnt-node --version").out == f"gnt-node (Gantry) {VERSION}\n"
    assert run("gantry --version").out == f"gantry {VERSION}\n"
    assert run("gnt-cluster version").out == f"Software version: {VERSION}\n"


def _begins(command: Command | Entry) -> bool:
    """Tell whether a command has to be kept from working on this machine."""
    return isinstance(command, Command) and command.run in (
        "init:init",
        "takeover:take_over",
        "destroy:destroy",
    )


@pytest.mark.parametrize("line", ["gnt-node frob", "gantry frob", "gantry node frob"])
def test_a_command_that_does_not_exist(run: Run, line: str) -> None:
    ran = run(line)
    assert ran.code == 2
    assert "frob”; see “" in ran.err


@pytest.mark.parametrize(
    "line",
    [
        f"{program} {name} {'--help' if _begins(command) else '--frobnicate'}"
        for program, area in AREAS.items()
        for name, command in area.commands.items()
    ],
)
def test_every_command_can_be_reached(run: Run, line: str) -> None:
    if line.endswith("--help"):
        with pytest.raises(SystemExit):
            run(line)
        return
    ran = run(line)
    assert ran.code == 2
    assert ran.err.count("\n") == 1


def tell(root: Path, *, master: str = "", me: str = "") -> None:
    """Make the files of a node that knows of a cluster."""
    paths = Paths(str(root))
    if master:
        paths.ssconf.mkdir(parents=True)
        (paths.ssconf / "master_node").write_text(f"{master}\n")
    if me:
        paths.identity.mkdir(parents=True)
        (paths.identity / "membership.json").write_text(json.dumps({"node": me}))


@pytest.mark.parametrize(
    ("master", "me", "code", "told"),
    [
        ("", "", 5, "This node is in no cluster."),
        ("alpha", "beta", 11, "This node, beta, is not the master; alpha is."),
        ("alpha", "alpha", 8, "The coordinator does not run here, though alpha is the master"),
        ("alpha", "", 8, "The coordinator does not run here, though alpha is the master"),
    ],
)
def test_without_a_coordinator_the_operator_is_told_where_to_go(
    run: Run, root: Path, master: str, me: str, code: int, told: str
) -> None:
    tell(root, master=master, me=me)
    for line in ("gnt-instance list", "gnt-debug delay 1", "gnt-cluster info", "gnt-job info 1"):
        ran = run(line)
        assert (ran.code, ran.out) == (code, "")
        assert told in ran.err
        assert ran.err.count("\n") == 1


def test_every_node_knows_the_master(run: Run, root: Path) -> None:
    assert run("gnt-cluster getmaster").code == 5
    tell(root, master="alpha")
    assert run("gnt-cluster getmaster").out == "alpha\n"


def test_the_join_token_is_shown(run: Run, root: Path) -> None:
    ran = run("gantry join-token")
    assert ran.code == 4
    assert "Is it running?" in ran.err
    token = Paths(str(root)).join_token
    token.parent.mkdir(parents=True)
    token.write_text("gantry-join.abc\n")
    assert run("gantry join-token").out == "gantry-join.abc\n"
    token.unlink()
    tell(root, me="beta")
    assert "This node, beta, is in a cluster already" in run("gantry join-token").err


def test_objects_are_described(run: Run, coordinator: ScriptedCoordinator) -> None:
    told = run("gnt-instance info db1.example.com").out
    assert told.startswith("Instance name: db1.example.com\n")
    for line in (
        "State: configured to be up, actual state is running, with 256M and 2 vCPUs",
        "  primary: alpha",
        "  kernel_path: /boot/vmlinuz",
        "  acpi: default (True)",
        "  maxmem: 256",
        "  vcpus: default (1)",
        "  - disk/1: 128M",
        "    MAC: aa:00:00:00:00:01",
        "  - db",
    ):
        assert f"{line}\n" in told + "\n"
    assert "actual state" not in run("gnt-instance info -s mail").out
    assert run("gnt-instance info").code == 2
    assert run("gnt-instance info --all").out.count("Instance name") == 4
    told = run("gnt-node info beta").out
    assert "role: C\n" in told
    assert "  total: 4.0G\n" in told
    assert "memory:\n  total: unknown\n" in run("gnt-node info gamma").out
    told = run("gnt-cluster info").out
    assert "Master node: alpha\n" in told
    assert "  archive jobs after: 6 hours\n" in told
    assert "  delete archived jobs after: 21 days\n" in told
    assert json.loads(run("gnt-cluster info --json").out)["master"] == "alpha"
    assert json.loads(run("gnt-node info --json").out)[2]["mtotal"] is None


def test_nobody_reading_is_no_error(root: Path, coordinator: ScriptedCoordinator) -> None:
    code = (
        "import sys; from coordinator.cli.main import gnt_instance;"
        "sys.argv = ['x', 'list-fields'];"
        "sys.stdin.readline(); sys.exit(gnt_instance())"
    )
    program = subprocess.Popen(
        [sys.executable, "-c", code], cwd=CHECKOUT, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ.copy(),
    )  # fmt: skip
    assert program.stdout
    program.stdout.close()
    program.stdout = None
    _, told = program.communicate(b"\n", timeout=30)
    assert (program.returncode, told) == (141, b"")


def test_output_that_cannot_be_written_is_one_sentence(root: Path) -> None:
    code = "import sys; from coordinator.cli.main import gnt_instance;"
    code += "sys.argv = ['x', '--help']; sys.exit(gnt_instance())"
    with Path("/dev/full").open("w") as full:
        program = subprocess.run(  # noqa: TID251 -- no loop to block
            [sys.executable, "-c", code], cwd=CHECKOUT, stdout=full, stderr=subprocess.PIPE,
            env=os.environ.copy(), text=True, check=False,
        )  # fmt: skip
    told = "Failure: No space left on device.\n"
    assert (program.returncode, program.stderr) == (1, told)


def test_a_list_imports_nothing_heavy(root: Path, coordinator: ScriptedCoordinator) -> None:
    heavy = ("aiohttp", "asyncio", "cryptography", "dataclasses", "msgspec", "numpy", "ssl")
    code = (
        "import sys; from coordinator.cli.main import gnt_instance;"
        "sys.argv = ['x', 'list', '--no-headers', '-o', 'name', 'web*'];"
        "assert gnt_instance() == 0;"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    done = subprocess.check_output([sys.executable, "-c", code], cwd=CHECKOUT, text=True)
    assert done == "web1.example.com\nweb2.example.com\n[]\n"


@pytest.mark.usefixtures("coordinator")
def test_groups_are_listed_and_told_in_full(run: Run) -> None:
    listed = run("gnt-group list --no-headers --separator=, -o name,node_cnt,alloc_policy")
    assert (listed.code, listed.err) == (0, "")
    names = [line.partition(",")[0] for line in listed.out.splitlines()]
    told = run("gnt-group info").out
    assert [f"Group name: {name}\n" in told for name in names] == [True] * len(names)
    for words in ("allocation policy: preferred", "spindle_count: default (1)", "vcpu-ratio: 4.0"):
        assert words in told
    (one,) = json.loads(run(f"gnt-group info --json {names[0]}").out)
    assert one["name"] == names[0]
    assert run("gnt-group info nowhere").code == 3
    assert run("gnt-group list-fields").code == 0


def test_the_command_for_a_cluster_of_the_same_sizes_can_be_given(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    ran = run("gnt-cluster show-ispecs-cmd")
    assert ran.code == 0
    words = ran.out.split()
    assert words[:3] == ["gnt-cluster", "init", "--ipolicy-std-specs"]
    wanted = read_wanted(parser_of("gnt-cluster init").parse_args([*words[2:], "--address=::1"]))
    assert wanted.name == coordinator.methods["QueryClusterInfo"]()["name"]
    assert wanted.ipolicy == InstancePolicy()


@pytest.mark.usefixtures("coordinator")
def test_the_command_for_a_group_of_the_same_policy_can_be_given(run: Run) -> None:
    name = run("gnt-group list --no-headers -o name").out.split()[0]
    ran = run(f"gnt-group show-ispecs-cmd --include-defaults {name}")
    assert ran.code == 0
    words = ran.out.split()
    assert (words[:2], words[-1]) == (["gnt-group", "add"], name)
    assert "--ipolicy-bounds-specs" in words
    assert "--ipolicy-vcpu-ratio" in words
    ran = run(f"gnt-group show-ispecs-cmd {name}")
    assert ran.out.split()[-1] == name
    assert run("gnt-group show-ispecs-cmd nowhere").code == 3
