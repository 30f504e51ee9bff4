"""The small files that every node has of the cluster."""

from msgspec.structs import replace

from coordinator.operations.node.ssconf import ssconf_files
from coordinator.state.rows import Put
from noded.ganeti_paths import SWITCH
from noded.handlers.files import NAMES
from tests.unit.queries.cluster import STATE

LEFT_OUT = {"instance_list", "ssh_ports"}  # too large; and what is not ours


def test_every_file_of_ganetis_is_there_but_those_that_are_left_out() -> None:
    hypervisors = {name for name in NAMES if name.startswith("hvparams_")}
    cluster = replace(STATE.config.cluster, ganeti_paths=True)
    files = ssconf_files(STATE.apply([Put(cluster)]).config)
    assert files.keys() - hypervisors == NAMES - hypervisors - LEFT_OUT


def test_a_file_that_older_nodes_do_not_know_is_published_only_where_it_is_asked_for() -> None:
    assert SWITCH not in ssconf_files(STATE.config)


def test_lists_have_a_line_for_each_in_the_form_of_ganeti() -> None:
    cluster = replace(
        STATE.config.cluster,
        tags=("red", "blue"),
        hvparams={"kvm": {"kernel_path": "", "acpi": False}, "xen-pvm": {}},
        master_ip="192.0.2.99",
        master_netdev="eth0",
        master_netmask=24,
        uid_pool=((70_000, 70_099), (70_200, 70_200)),
    )
    files = ssconf_files(STATE.apply([Put(cluster)]).config)
    assert files["cluster_tags"] == "blue\nred\n"
    assert files["uid_pool"] == "70000-70099\n70200\n"
    assert ssconf_files(STATE.config)["uid_pool"] == ""
    assert files["hvparams_kvm"] == "acpi=False\nkernel_path=\n"
    assert "hvparams_xen-pvm" not in files  # is not enabled
    assert [files[f"master_{each}"] for each in ("ip", "netdev", "netmask")] == [
        "192.0.2.99\n", "eth0\n", "24\n",
    ]  # fmt: skip
    assert files["primary_ip_family"] == "2\n"
    groups = STATE.config.sorted_groups()
    assert files["nodegroups"] == "".join(f"{each.uuid} {each.name}\n" for each in groups)
    assert "alpha=True\n" in files["node_vm_capable"]
