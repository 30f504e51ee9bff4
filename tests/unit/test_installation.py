"""What deploy/install puts in place fits together: commands, units, and what they name."""

import re
import subprocess
import sys
import tomllib
from configparser import ConfigParser
from pathlib import Path

import pytest

from common.errors import Deposed
from common.model.kvm import KvmParameters
from common.model.parameters import Backend
from common.noderpc.identity import Identity, Join
from common.paths import Paths
from coordinator.cli import service
from deploy.launchers import write_launchers
from deploy.manpages import roff
from deploy.manpages.pages import pages
from deploy.manpages.parameters import meanings
from noded.handlers.confd import GROUP as CONFD_GROUP
from noded.identity.directory import MEMBER
from noded.identity.keys import MOST_S
from noded.monitor.volumes import FIELDS, FILE

PROJECT = Path(__file__).parents[2]
KINDS = ("service", "path", "timer", "mount")
UNITS = sorted(unit for kind in KINDS for unit in PROJECT.glob(f"systemd/*.{kind}"))
SCRIPTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["scripts"]


def read(unit: Path) -> ConfigParser:
    """Read a unit; of a setting that is given several times, the last."""
    parser = ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(unit.read_text())
    return parser


def test_launchers_are_written_for_all_commands_and_start(tmp_path: Path) -> None:
    write_launchers(tmp_path, sys.executable)
    written = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {"gantry", "gantry-noded", "gantry-coordinator", "gnt-instance"} <= written.keys()
    assert written["gnt-node"] == (
        f"#!{sys.executable} -I\nimport sys\n\nfrom coordinator.cli.main import gnt_node\n\n"
        "sys.exit(gnt_node())\n"
    )
    told = subprocess.check_output([tmp_path / "gantry-noded", "--version"], text=True)
    assert told.startswith("gantry-noded ")


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_units_start_programs_that_are_installed(unit: Path) -> None:
    if unit.suffix == ".service":
        program = read(unit)["Service"]["ExecStart"].split()[0]
        assert program in SCRIPTS or program in {"systemctl", "lvm"}


def test_units_that_begin_with_the_machine_are_enabled() -> None:
    text = (PROJECT / "deploy/install").read_text()
    enabled, optional = (
        set(re.findall(rf"^{name}=\((.*?)\)", text, re.MULTILINE)[0].split())
        for name in ("UNITS", "OPTIONAL")
    )
    assert enabled | optional == {u.name for u in UNITS if read(u).has_section("Install")}
    assert service.UNIT in enabled
    assert optional == {"gantry-confd.service", "gantry-monitor.service", "gantry-rapi.service"}


def test_the_coordinators_unit_knows_its_paths() -> None:
    text = (PROJECT / "systemd/gantry-coordinator.service").read_text()
    unit = read(PROJECT / "systemd/gantry-coordinator.service")
    paths = Paths("")
    assert unit["Unit"]["ConditionPathExists"] == str(paths.identity / MEMBER)
    assert f"/run/{unit['Service']['RuntimeDirectory']}" == str(paths.luxi_socket.parent)
    assert f"${service.OPTIONS}" in unit["Service"]["ExecStart"]
    credentials = dict(re.findall(r"^LoadCredential=(.*):(.*)$", text, re.MULTILINE))
    assert credentials == {
        name: str(paths.identity / name)
        for name in ("key.pem", "certificate.pem", "authority.pem", MEMBER)
    }


def test_the_coordinator_sees_who_connects() -> None:
    """In a user namespace of its own, everybody but root and itself would be nobody."""
    unit = read(PROJECT / "systemd/gantry-coordinator.service")["Service"]
    assert unit.get("PrivateUsers", "no") == "no"
    assert unit.get("DynamicUser", "no") == "no"  # the group of its socket is a fixed one


def test_the_rest_interface_reaches_the_coordinator_and_none_of_its_keys() -> None:
    unit = read(PROJECT / "systemd/gantry-rapi.service")["Service"]
    users = (PROJECT / "systemd/gantry.sysusers.conf").read_text()
    coordinator = read(PROJECT / "systemd/gantry-coordinator.service")["Service"]
    assert unit["User"] != coordinator["User"]
    assert f"u {unit['User']} " in users
    assert unit["SupplementaryGroups"] == coordinator["Group"]
    assert "LoadCredential" not in unit
    assert f"/var/lib/{unit['StateDirectory']}" == str(Paths("").rapi_certificate.parent)
    assert f"/var/log/{unit['LogsDirectory']}" == str(Paths("").access_log.parent)


def test_the_configuration_daemon_reads_its_files_and_reaches_nobody() -> None:
    unit = read(PROJECT / "systemd/gantry-confd.service")["Service"]
    users = (PROJECT / "systemd/gantry.sysusers.conf").read_text()
    assert unit["User"] == unit["Group"] == CONFD_GROUP
    assert f"u {unit['User']} " in users
    assert f"m {unit['User']} " not in users
    assert "SupplementaryGroups" not in unit
    assert "StateDirectory" not in unit


def test_the_watchers_unit_waits_for_the_socket_and_takes_11_for_no_failure() -> None:
    unit = read(PROJECT / "systemd/gantry-watcher.service")
    assert unit["Unit"]["ConditionPathExists"] == str(Paths("").luxi_socket)
    assert unit["Service"]["SuccessExitStatus"] == str(Deposed.exit_code)
    coordinator = read(PROJECT / "systemd/gantry-coordinator.service")
    for setting in ("User", "Group"):
        assert unit["Service"][setting] == coordinator["Service"][setting]


def test_no_socket_leads_a_script_out_of_a_network_of_its_own() -> None:
    unit = read(PROJECT / "systemd/gantry-noded.service")["Service"]
    # That to a machine's host has no names of networks, and nothing of ours speaks to it so.
    assert "AF_VSOCK" not in unit["RestrictAddressFamilies"].split()


def test_a_node_that_boots_slowly_has_time_to_make_its_first_keys() -> None:
    unit = read(PROJECT / "systemd/gantry-noded.service")["Service"]
    minutes = int(unit["TimeoutStartSec"].removesuffix("min"))
    # Else it begins anew until it happens to be fast; what it does besides needs as long at most.
    assert minutes * 60 / 2 <= MOST_S < minutes * 60


def test_who_asks_a_node_for_its_key_waits_as_long_as_it_may_make_one() -> None:
    for kind in (Join, Identity):
        assert kind.calls["request"].timeout > MOST_S


def test_volumes_are_written_down_where_the_agent_reads_them_and_as_it_does() -> None:
    unit = read(PROJECT / "systemd/gantry-volumes.service")["Service"]
    assert unit["StandardOutput"] == f"truncate:{FILE}"
    assert int(unit["UMask"], 8) & 0o004 == 0, "the agent is nobody, and reads it"
    words = unit["ExecStart"].split()
    assert words[words.index("--options") + 1].split(",") == list(FIELDS)
    agent = read(PROJECT / "systemd/gantry-monitor.service")["Unit"]
    assert agent["Wants"] == "gantry-volumes.timer"


def test_the_memory_of_guests_is_bounded_and_never_hides_those_that_run() -> None:
    where = str(Paths("").instances)
    mount = read(PROJECT / f"systemd/{where.strip('/').replace('/', '-')}.mount")
    assert mount["Mount"]["Where"] == where
    assert "size=" in mount["Mount"]["Options"]
    assert mount["Unit"]["ConditionDirectoryNotEmpty"] == f"!{where}"
    noded = read(PROJECT / "systemd/gantry-noded.service")["Unit"]
    for relation in ("Wants", "After"):
        assert "run-gantry-instances.mount" in noded[relation].split()


@pytest.mark.skipif(
    not list(Path("/usr/share/python-wheels").glob("pip-*.whl")),
    reason="NO PIP OF DEBIAN: what deploy/install takes was not tried",
)
def test_wheels_that_the_lock_does_not_know_are_not_installed(tmp_path: Path) -> None:
    lock = (PROJECT / "requirements/run.lock").read_text()
    name, version = re.findall(r"^([\w-]+)==([\w.]+)", lock, re.MULTILINE)[0]
    given, taken = tmp_path / "given", tmp_path / "taken"
    given.mkdir()
    (given / f"{name}-{version}-py3-none-any.whl").write_bytes(b"something else")
    (given / "gantry-0.1.0-py3-none-any.whl").write_bytes(b"something else")
    done = subprocess.run(  # noqa: TID251 -- there is no loop to block here
        (PROJECT / "deploy/checked-wheels", given, taken),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "does not hold what requirements/run.lock lists" in done.stderr
    assert not list(taken.glob("*")) if taken.exists() else True
    install = (PROJECT / "deploy/install").read_text()
    assert 'deploy/checked-wheels "$given" "$WHEELS"' in install


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_every_unit_is_put_in_place(unit: Path) -> None:
    text = (PROJECT / "deploy/install").read_text()
    assert f"systemd/*{unit.suffix}" in text
    if unit.suffix in (".path", ".timer"):  # what they start has the same name
        assert unit.with_suffix(".service").exists()


def test_the_manual_tells_what_every_parameter_means() -> None:
    text = pages()["gnt-instance.8"]
    for kind in (KvmParameters, Backend):
        words = meanings(kind)
        assert tuple(words) == kind.__struct_fields__, "in the order in which they are declared"
        assert all(line.endswith(".") for line in words.values())
        assert all(roff.escaped(line) in text for line in words.values())
