"""``gnt-os``: what can be installed, as Ganeti prints it."""

import io
import json

import pytest

from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator

GOOD = ["/srv/os/debian", True, "", ["stable"], [["mirror", "where packages are"]], [15, 20], True]
BAD = ["/srv/os/debian", False, "It has no script “create”.", [], [], [], False]


def test_each_variant_is_listed_with_its_system(run: Run, coordinator: ScriptedCoordinator) -> None:
    coordinator.script_job(result=[["debian", ["stable", "testing"]], ["noop", []]])
    assert run("gnt-os list").out.split() == ["Name", "debian+stable", "debian+testing", "noop"]
    assert run("gnt-os list --no-headers").out.split()[0] == "debian+stable"
    assert json.loads(run("gnt-os list --json").out)[-1] == "noop"


def test_what_keeps_a_node_from_installing_something_is_told(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    there = {"alpha": [GOOD], "beta": [BAD], "gamma": []}
    coordinator.script_job(result=[["debian", False, [], there, True, False]])
    ran = run("gnt-os diagnose")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "OS: debian [global status: partial valid] [hidden]",
        "  Node: alpha, status: valid (path: /srv/os/debian) [API versions: 15, 20] "
        "[variants: stable] [parameters: mirror] [trusted]",
        "  Node: beta, status: invalid - It has no script “create”. (path: /srv/os/debian) "
        "[no API versions declared] [untrusted]",
        "  Node: gamma, status: OS not found",
        "",
    ]


def test_diagnosis_ends_with_0_where_all_nodes_can_install_all(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    there = {"alpha": [GOOD]}
    coordinator.script_job(result=[["debian", True, ["stable"], there, False, False]])
    ran = run("gnt-os diagnose")
    assert ran.code == 0
    assert "[global status: valid]" in ran.out
    assert "  Variants: [stable]" in ran.out


def test_all_about_an_operating_system_is_shown(run: Run, coordinator: ScriptedCoordinator) -> None:
    parameters = [["mirror", "where packages are"]]
    row = [
        "debian", True, ["stable"], parameters, [20, 15], False, True, {"kvm": {"acpi": False}},
        {"mirror": "http://mirror"}, True,
    ]  # fmt: skip
    coordinator.script_job(result=[row])
    ran = run("gnt-os info debian plan9")
    assert ran.code == 0
    assert ran.out.splitlines()[:13] == [
        "debian:",
        "  - valid: True",
        "  - hidden: True",
        "  - blacklisted: False",
        "  - API versions:",
        "    - 15",
        "    - 20",
        "  - variants:",
        "    - stable",
        "  - parameters:",
        "    - mirror: where packages are",
        "  - trusted: True",
        "  hypervisor parameters of its instances:",
    ]
    assert "http://mirror" in ran.out
    assert "plan9: no node has it" in ran.out
    assert json.loads(run("gnt-os show --json debian").out)[0]["variants"] == ["stable"]


def test_which_system_is_installed_anew_can_be_chosen_from_a_list(
    run: Run, coordinator: ScriptedCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    coordinator.script_job(result=[["debian", ["stable", "testing"]], ["noop", []]])
    monkeypatch.setattr("sys.stdin", io.StringIO("2\n"))
    ran = run("gnt-instance reinstall -f --select-os web1")
    assert ran.code == 0
    assert "  3: noop" in ran.err
    assert coordinator.submitted[-1][0]["os_type"] == "debian+testing"
    monkeypatch.setattr("sys.stdin", io.StringIO("plan9\n"))
    assert "“plan9” is none of them" in run("gnt-instance reinstall -f --select-os web1").err
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert run("gnt-instance reinstall -f --select-os web1").code == 13


def test_what_the_cluster_has_for_a_system_is_changed_in_ganetis_words(
    run: Run, coordinator: ScriptedCoordinator
) -> None:
    coordinator.script_job()
    line = (
        "gnt-os modify -H kvm:acpi=no -O mirror=near,arch=default --os-parameters-private "
        "root_password=sesame --hidden=yes --blacklisted=no debian"
    )
    assert run(line).code == 0
    order = coordinator.submitted[-1][0]
    assert order["OP_ID"] == "OP_CLUSTER_SET_PARAMS"
    assert order["os_hvp"] == {"debian": {"kvm": {"acpi": False}}}
    assert order["osparams"] == {"debian": {"mirror": "near", "arch": "default"}}
    assert order["osparams_private_cluster"] == {"debian": {"root_password": "sesame"}}
    assert order["hidden_os"] == [["add", "debian"]]
    assert order["blacklisted_os"] == [["remove", "debian"]]
    assert "Say what is to be changed of debian" in run("gnt-os modify debian").err
