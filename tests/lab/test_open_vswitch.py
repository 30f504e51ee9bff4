"""A guest speaks with another node over one VLAN of Open vSwitch's switches, wherever it runs."""

from deploy.uml.lab import Lab
from deploy.uml.node import Node
from deploy.uml.place import SHARED
from tests.lab.stage import Stage, on_request, said, until
from tests.support.guest_builder import builder

NAME, DIRECTORY = "talker", "talking-guest"  # the latter of the directory that nodes share
PARAMETERS = f"kernel_path={SHARED}/{DIRECTORY}/vmlinuz,initrd_path={SHARED}/{DIRECTORY}/initrd"
GUEST, PEER = "192.0.2.1", "192.0.2.2"
OWN_PORT = "vlan10"  # gamma's, with the peer's address
SLOW_S = 300.0

INIT = f"""#!/bin/sh
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
while read -r module; do insmod "/modules/$module"; done </modules/order
ip link set eth0 up
ip address add {GUEST}/24 dev eth0
number=0
while :; do
    number=$((number + 1))
    if /bin/busybox ping -c 1 -W 1 {PEER} >/dev/null; then
        echo "answer $number"
        /bin/busybox sleep 1
    else
        echo "silence $number"
    fi
done
"""

# br0 is the wire between nodes, which passes tags on; ovs0 tells VLANs apart.
LAY_OUT = (
    "modprobe openvswitch && systemctl start openvswitch-switch "
    "&& ovs-vsctl --may-exist add-br ovs0 && ip link add to-wire type veth peer name to-switch "
    "&& ip link set to-switch up && ip link set to-wire master br0 up "
    "&& ovs-vsctl --may-exist add-port ovs0 to-switch"
)
TAKE_AWAY = "ovs-vsctl del-br ovs0; ip link del to-wire; systemctl stop openvswitch-switch"


@on_request
def test_a_guest_speaks_over_its_vlan_and_over_no_other_wherever_it_runs(stage: Stage) -> None:
    put_files(stage.lab)
    nodes = (stage.beta, stage.gamma)
    try:
        for node in nodes:
            assert "exit 0" in said(node, LAY_OUT, seconds=SLOW_S)
        stage.gamma.run(
            f"ovs-vsctl add-port ovs0 {OWN_PORT} tag=10 -- set interface {OWN_PORT} type=internal "
            f"&& ip address add {PEER}/24 dev {OWN_PORT} && ip link set {OWN_PORT} up"
        )
        nic = "--net 0:mode=openvswitch,link=ovs0,vlan=.10"
        add = f"add -t diskless -n beta {nic} -B memory=128 -H kvm:{PARAMETERS} {NAME}"
        assert "exit 0" in said(stage.alpha, f"gnt-instance {add}", seconds=SLOW_S)
        guest = Talker(stage)
        guest.hears(stage.beta, "answer")

        stage.gamma.run(f"ovs-vsctl set port {OWN_PORT} tag=20")
        guest.hears(stage.beta, "silence")
        stage.gamma.run(f"ovs-vsctl set port {OWN_PORT} tag=10")
        guest.hears(stage.beta, "answer")

        move = f"gnt-instance migrate --force -n gamma {NAME}"
        assert "exit 0" in said(stage.alpha, move, seconds=SLOW_S)
        guest.hears(stage.gamma, "answer")
        assert ports(stage.beta) == {"to-switch"}
        assert len(ports(stage.gamma)) == 3

        restart = "systemctl restart openvswitch-switch"
        assert "exit 0" in said(stage.gamma, restart, seconds=SLOW_S)
        guest.hears(stage.gamma, "answer")
        said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
        assert ports(stage.gamma) == {"to-switch", OWN_PORT}
    finally:
        said(stage.alpha, f"gnt-instance remove --force --shutdown-timeout 0 {NAME}")
        for node in nodes:
            said(node, TAKE_AWAY, seconds=SLOW_S)


class Talker:
    """An instance that tells whether it is answered."""

    def __init__(self, stage: Stage) -> None:
        fields = "gnt-instance list --no-headers -o uuid"
        self._uuid = stage.alpha.run(f"{fields} {NAME}").strip()

    def hears(self, node: Node, what: str) -> None:
        """Wait until it has told so three times more, on a node."""

        def count() -> int:
            console = f"/run/gantry/instances/{self._uuid}/serial.log"
            return node.run(f"cat {console} 2>/dev/null; true").count(f"{what} ")

        before = count()
        until(lambda: count() >= before + 3, f"{NAME} to tell of {what} on {node.name}", SLOW_S)


def ports(node: Node) -> set[str]:
    return set(node.run("ovs-vsctl list-ports ovs0").split())


def put_files(lab: Lab) -> None:
    """Have the guest's kernel and program where all nodes see them."""
    build = builder()
    kernel, modules = build.find_kernel(build.SETUP_KERNEL)
    files = lab.place.shared / DIRECTORY
    files.mkdir(exist_ok=True)
    (files / "vmlinuz").write_bytes(kernel.read_bytes())
    archive = build.Archive()  # the kernel unpacks one after the other; what comes last counts
    archive.file("init", INIT.encode(), executable=True)
    (files / "initrd").write_bytes(build.make_initrd(modules) + archive.finish())
