"""A published configuration of three nodes and two instances."""

from common.confd_snapshot import (
    CONFIG_VERSION,
    PublishedCluster,
    PublishedDisk,
    PublishedInstance,
    PublishedNic,
    PublishedNode,
    Snapshot,
)

ALPHA, BETA, GAMMA = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
SERIAL = 42


def published(serial: int = SERIAL) -> Snapshot:
    """Return what is published: alpha is the master, beta a candidate, gamma is offline."""
    return Snapshot(
        version=CONFIG_VERSION,
        serial_no=serial,
        cluster=PublishedCluster(
            uuid="c", name="greek", serial_no=1, ctime=0.0, mtime=0.0, tags=("a/b",),
            cluster_name="greek", master_node=ALPHA, candidate_pool_size=2,
            enabled_hypervisors=("kvm",), enabled_disk_templates=("drbd",),
            mac_prefix="aa:00:00", volume_group_name="xenvg", file_storage_dir="",
            shared_file_storage_dir="", nicparams={"mode": "bridged", "link": "br0", "vlan": ""},
        ),
        nodes={
            node.uuid: node
            for node in (
                _node(ALPHA, "alpha", 1, master_candidate=True),
                _node(BETA, "beta", 2, master_candidate=True),
                _node(GAMMA, "gamma", 3, offline=True),
            )
        },
        nodegroups={},
        networks={},
        instances={
            each.uuid: each
            for each in (
                _instance("web1", BETA, ALPHA, "198.51.100.1", "br0"),
                _instance("web2", ALPHA, BETA, "198.51.100.1", "br1"),
            )
        },
    )  # fmt: skip


def _node(
    uuid: str, name: str, number: int, *, master_candidate: bool = False, offline: bool = False
) -> PublishedNode:
    return PublishedNode(
        uuid=uuid, name=name, serial_no=1, ctime=0.0, mtime=0.0, tags=(),
        primary_ip=f"192.0.2.{number}", secondary_ip=f"203.0.113.{number}", group="g",
        master_candidate=master_candidate, offline=offline, drained=False, master_capable=True,
        vm_capable=True,
    )  # fmt: skip


def _instance(name: str, primary: str, secondary: str, ip: str, link: str) -> PublishedInstance:
    return PublishedInstance(
        uuid=f"uuid-{name}", name=name, serial_no=1, ctime=0.0, mtime=0.0, tags=(),
        primary_node=primary, secondary_nodes=(secondary,), admin_state="up", hypervisor="kvm",
        os="noop", disk_template="drbd",
        disks=(
            PublishedDisk(
                uuid=f"disk-{name}", name="", iv_name="disk/0", dev_type="drbd", size=64,
                mode="rw", logical_id=(primary, secondary, 11000, 3, 5, None),
                nodes=(primary, secondary), minors={primary: 3, secondary: 5},
            ),
        ),
        nics=(
            PublishedNic(
                uuid=f"nic-{name}", name="", mac="aa:00:00:00:00:01", ip=ip, network="",
                nicparams={"mode": "bridged", "link": link, "vlan": ""},
            ),
        ),
    )  # fmt: skip
