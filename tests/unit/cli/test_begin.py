import os
import socket
import stat
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import InvalidRequest, NodeFailure
from common.model.policy import InstancePolicy
from common.paths import Paths
from coordinator.cli import service
from coordinator.cli.init import own_address, parser_of, read_wanted
from tests.unit.cli.conftest import Run
from tests.unit.cli.coordinator import ScriptedCoordinator


def test_a_member_of_a_cluster_hears_of_that_first(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANTRY_ROOT", str(tmp_path))
    identity = Paths().identity
    identity.mkdir(parents=True)
    (identity / "membership.json").write_text("{}")
    ran = run("gnt-cluster init prod --master-netdev eth0 --node-name nowhere.invalid")
    assert (ran.code, ran.out) == (4, "")
    assert "This node is in a cluster already" in ran.err


def test_words_become_a_cluster() -> None:
    words = (
        "prod --node-name alpha --address 192.0.2.1 -C 3 --enabled-hypervisors kvm,fake "
        "--shared-file-storage-dir /srv/shared -B memory=1G,vcpus=2 -N link=br1,guarded=no "
        "--gluster-storage-dir /srv/gluster -D gluster:volume=gv1 --ipolicy-vcpu-ratio 2 "
        "-H kvm:kernel_path=/vmlinuz,acpi=no --hypervisor-defaults fake:migration_mode=live "
        "--no-ssh-init "
        "--default-iallocator-params mond=yes --maintain-node-health=yes"
    )
    wanted = read_wanted(parser_of("gnt-cluster init").parse_args(words.split()))
    assert wanted.name == "prod"
    assert wanted.node == "alpha"
    assert wanted.primary_ip == "192.0.2.1"
    assert wanted.default_iallocator == "hail"
    assert wanted.default_iallocator_params == {"mond": "yes"}
    assert wanted.settings.given() == {
        "candidate_pool_size": 3,
        "enabled_hypervisors": ("kvm", "fake"),
        "enabled_disk_templates": ("sharedfile", "file", "diskless"),
        "volume_group_name": "",
        "file_storage_dir": "",
        "shared_file_storage_dir": "/srv/shared",
        "gluster_storage_dir": "/srv/gluster",
        "mac_prefix": "aa:00:00",
        "maintain_node_health": True,
    }
    assert wanted.beparams == {"maxmem": 1024, "minmem": 1024, "vcpus": 2}
    assert wanted.hvparams == {
        "kvm": {"kernel_path": "/vmlinuz", "acpi": False}, "fake": {"migration_mode": "live"},
    }  # fmt: skip
    assert wanted.ipolicy == replace(InstancePolicy(), vcpu_ratio=2.0)
    assert wanted.diskparams == {"gluster": {"volume": "gv1"}}
    assert wanted.nicparams == {"link": "br1", "guarded": False}


def test_a_cluster_begins_with_a_pool_of_user_ids() -> None:
    words = ["c1", "--address", "192.0.2.1", "--uid-pool", "70000-70099,70200"]
    wanted = read_wanted(parser_of("gnt-cluster init").parse_args(words))
    assert wanted.settings.uid_pool == ((70_000, 70_099), (70_200, 70_200))
    with pytest.raises(InvalidRequest, match="ends before it begins"):
        read_wanted(parser_of("gnt-cluster init").parse_args([*words[:-1], "70009-70000"]))


def test_what_is_not_said_of_a_cluster_is_shown_in_the_help() -> None:
    told = " ".join(parser_of("gnt-cluster init").format_help().split())
    for default in ("(5)", "(kvm)", "(sharedfile,file,diskless)", "(hail)", "(aa:00:00)", "(1811)"):
        assert default in told
    assert "()" not in told


def test_the_address_is_that_of_the_name_unless_it_is_local(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = [(0, 0, 0, "", ("127.0.1.1", 0)), (0, 0, 0, "", ("192.0.2.7", 0))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    assert own_address("alpha") == "192.0.2.7"

    class Unroutable(socket.socket):
        def connect(self, _: object) -> None:
            raise OSError("Network is unreachable")

    found.pop()
    monkeypatch.setattr(socket, "socket", Unroutable)
    with pytest.raises(InvalidRequest, match="--address"):
        own_address("alpha")


def test_a_cluster_without_noded_is_refused(run: Run) -> None:
    ran = run("gnt-cluster init prod --node-name alpha --address 127.0.0.1")
    assert ran.code == 8
    assert "gantry-noded has not been started" in ran.err
    ran = run("gnt-cluster init Prod! --node-name alpha --address 127.0.0.1")
    assert ran.code == 2
    assert "is no cluster name" in ran.err


def program(root: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Put a ``gantry-coordinator`` beside the command that is running."""
    path = root / "bin" / "gantry-coordinator"
    path.parent.mkdir()
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "argv", [str(path.with_name("gnt-cluster"))])


def test_a_coordinator_that_ends_at_once_says_why(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Paths(str(root)).logs / "coordinator.log"
    log.parent.mkdir(parents=True)
    log.write_text("of yesterday\n")
    program(root, monkeypatch, "print('first'); print('No quorum.')")
    with pytest.raises(NodeFailure, match=r"ended at once: No quorum\."):
        service.start()
    program_text = "import sys; sys.exit(1)"
    (root / "bin" / "gantry-coordinator").write_text(f"#!{sys.executable}\n{program_text}")
    with pytest.raises(NodeFailure, match="it said nothing"):
        service.start()


ANSWERING = """
import os, socket, sys
path = os.environ["GANTRY_ROOT"] + "/run/gantry/coordinator/luxi.sock"
os.makedirs(os.path.dirname(path), exist_ok=True)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
listener.listen()
while True:
    connection, _ = listener.accept()
    if connection.recv(65536):
        connection.sendall(b'{"success": true, "result": ["test"]}\\x03')
"""


def test_a_coordinator_is_started_and_stopped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(root, monkeypatch, ANSWERING)
    assert not service.is_answering()
    service.stop()  # nothing to do
    service.start()
    assert service.is_answering()
    pid = service.coordinator_pid()
    assert pid is not None
    service.stop()
    assert not service.is_answering()
    os.waitpid(pid, 0)


def test_what_answers_garbage_does_not_answer(root: Path, coordinator: ScriptedCoordinator) -> None:
    assert service.is_answering()
    coordinator.methods["QueryConfigValues"] = _hang_up
    assert not service.is_answering()


def _hang_up(_: object) -> None:
    raise ConnectionError


def test_systemd_passes_the_word_on_for_one_start(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = root / "asked"
    systemctl = root / "bin" / "systemctl"
    systemctl.parent.mkdir()
    systemctl.write_text(f'#!/bin/sh\necho "$@" >>{asked}\n[ "$1" != start ] || exit 5\n')
    systemctl.chmod(systemctl.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{systemctl.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(service, "by_systemd", lambda: True)
    with pytest.raises(NodeFailure, match="journalctl -u gantry-coordinator"):
        service.start(("--no-voting", "--yes-do-it"))
    assert asked.read_text().splitlines() == [
        "set-environment GANTRY_COORDINATOR_OPTIONS=--no-voting --yes-do-it",
        "start gantry-coordinator.service",
        "unset-environment GANTRY_COORDINATOR_OPTIONS",
    ]
