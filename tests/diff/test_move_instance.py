"""Debian's move-instance moves an instance from one cluster of ours to another one."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from common.noderpc.operating_systems import Script
from coordinator.operations.cluster.renew_crypto import RenewCrypto
from coordinator.operations.instance.modify import ModifyInstance
from coordinator.operations.specs import disk_spec
from tests.diff.debian_ganeti import (
    COMMANDS,
    LIBRARIES,
    PYTHON,
    needs_ganeti,
    served_clusters,
)
from tests.sim.settings import WEB1, mirrored
from tests.sim.stories.backup import debian_with_data
from tests.support.rapi import WRITER, RapiProcess, rapi_process

pytestmark = needs_ganeti


def moved(folder: Path, here: RapiProcess, there: RapiProcess, *options: str) -> str:
    """Run the tool; return what it says."""
    (folder / "password").write_text(f"{WRITER[1]}\n")
    ran = subprocess.run(  # noqa: TID251 - the other program, and no loop in this thread
        [
            PYTHON, COMMANDS / "move-instance", "--verbose",
            f"--src-ca-file={here.paths.rapi_certificate}",
            f"--dest-ca-file={there.paths.rapi_certificate}",
            f"--src-rapi-port={here.port}", f"--dest-rapi-port={there.port}",
            f"--src-username={WRITER[0]}", f"--src-password-file={folder}/password",
            "--opportunistic-tries=0",  # it stumbles over its own default
            *options, "127.0.0.1", "127.0.0.1", "web1",
        ],
        env=os.environ | {
            "PYTHONPATH": f"{COMMANDS}:{LIBRARIES}", "GANETI_ROOTDIR": str(folder / "here/alpha"),
            "GANETI_HOSTNAME": "alpha",
        },
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout
    return ran.stdout


def test_a_mirrored_instance_moves_with_its_data_and_what_it_was_like(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("m")  # sockets have short names only
    with ExitStack() as stack:
        clusters = stack.enter_context(served_clusters(folder / "here", folder / "there"))
        here, there = clusters
        api, other_api = [
            stack.enter_context(
                rapi_process(each.root, each.root / "var/run/ganeti/socket/ganeti-master")
            )
            for each in clusters
        ]
        for each in clusters:
            secret = "known to both clusters"
            each.wait_for(each.cluster.run(RenewCrypto(cluster_domain_secret=secret)))
        here.wait_for(here.cluster.run(mirrored()))
        here.wait_for(here.cluster.run(ModifyInstance(instance_name=WEB1, beparams={"vcpus": 2})))
        config = here.cluster.config
        web1 = config.instance("web1")
        nics = config.nics_of(web1)
        for disk in config.disks_of(web1):
            spec = disk_spec(config, web1, disk)
            here.cluster.machines["gamma"].written.write(spec, "data of web1")

        told = moved(
            folder, api, other_api, "--dest-primary-node=beta", "--dest-disk-template=plain"
        )

        assert "web1: Success" in told
        assert here.cluster.config.find_instance("web1") is None
        config = there.cluster.config
        web1 = config.instance("web1")
        assert (config.nodes[web1.primary_node].name, web1.disk_template) == ("beta", "plain")
        assert web1.beparams == {"vcpus": 2}
        assert [nic.mac for nic in config.nics_of(web1)] == [nic.mac for nic in nics]
        assert [each.name for each in config.disks_of(web1)] == [""]
        assert list(there.cluster.machines["beta"].contents.values()) == ["data of web1"]
        assert there.wait_for(there.cluster.snapshot()).guests["beta"] == {"web1": "running"}


@pytest.mark.parametrize("name", ["web1", "shop"])
def test_the_scripts_of_its_operating_system_pack_and_unpack_it(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    folder = tmp_path_factory.mktemp("m")  # sockets have short names only
    with ExitStack() as stack:
        here, there = clusters = stack.enter_context(
            served_clusters(folder / "here", folder / "there")
        )
        api, other_api = [
            stack.enter_context(
                rapi_process(each.root, each.root / "var/run/ganeti/socket/ganeti-master")
            )
            for each in clusters
        ]
        for each in clusters:
            secret = "known to both clusters"
            each.wait_for(each.cluster.run(RenewCrypto(cluster_domain_secret=secret)))
        here.wait_for(debian_with_data(here.cluster))
        run: list[Script] = []
        for cluster, node in ((here, "gamma"), (there, "beta")):
            systems = cluster.cluster.machines[node].operating_systems
            systems.watch = lambda order: run.append(order.script)

        told = moved(
            folder, api, other_api, "--dest-primary-node=beta", f"--dest-instance-name={name}"
        )

        assert ("web1: Success" if name == "web1" else "web1 as shop: Success") in told
        assert here.cluster.config.find_instance("web1") is None
        assert there.cluster.config.instance(name).os == "debian+stable"
        renamed = {Script.RENAME} if name == "shop" else set()
        word = "debian+stable for shop" if renamed else "data of web1"
        assert list(there.cluster.machines["beta"].contents.values()) == [word]
        assert {Script.EXPORT, Script.IMPORT} | renamed == set(run)
