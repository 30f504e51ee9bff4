"""Flaws in what nodes are like: programs, files, addresses, and what is left over of guests."""

from msgspec.structs import replace

from common.errors import Unreachable
from common.noderpc.files import FileReport
from coordinator.checks.finding import Severity
from coordinator.state.rows import Put
from tests.unit.checks.flaw import Flaw, facts
from tests.unit.checks.healthy import CLUSTER, DEBIAN, NOW, TAP, node

DISTRIBUTING = (Put(replace(CLUSTER, distributed_files=("/etc/hosts",))),)
WITH_ADDRESS = (Put(replace(CLUSTER, master_ip="192.0.2.9", master_netdev="eth0")),)

FLAWS_OF_NODES = {
    "a node does not answer": Flaw("ENODERPC", "no answer", beta=Unreachable("no answer")),
    "a node is of another version": Flaw(
        "ENODEVERSION", "runs version 0.9, the master 1.0", beta=facts(version="0.9"),
        severity=Severity.WARNING,
    ),
    "a clock is ahead": Flaw("ENODETIME", "600 s ahead of", beta=facts(clock=NOW + 600)),
    "a clock is behind": Flaw("ENODETIME", "200 s behind", beta=facts(clock=NOW - 200)),
    "a node lacks an operating system": Flaw(
        "ENODEOS", "lacks the operating system debian, which alpha has", beta={"systems": ()},
        severity=Severity.WARNING,
    ),
    "a node cannot install an operating system": Flaw(
        "ENODEOS", "cannot install the operating system debian: It has no script “create”.",
        beta={"systems": (replace(DEBIAN, problem="It has no script “create”."),)},
        severity=Severity.WARNING,
    ),
    "a node has another definition of an operating system": Flaw(
        "ENODEOS", "has other versions of the interface and variants of the operating system",
        beta={"systems": (replace(DEBIAN, variants=("sid",), api_versions=(15,)),)},
        severity=Severity.WARNING,
    ),
    "a distributed file is another one": Flaw(
        "ECLUSTERFILECHECK", "/etc/hosts is another one than on other nodes", DISTRIBUTING,
        beta={"files": {"/etc/hosts": "other"}},
    ),
    "a distributed file is missing": Flaw(
        "ECLUSTERFILECHECK", "/etc/hosts is missing, or not allowed", DISTRIBUTING,
        beta={"files": {"/etc/hosts": ""}},
    ),
    "an ssconf file is outdated": Flaw(
        "ENODEFILECHECK", "missing ssconf files: master_node",
        beta={"ssconf": {"master_node": FileReport(digest="old")}},
    ),
    "an ssconf file is missing": Flaw(
        "ENODEFILECHECK", "missing ssconf files: master_node", beta={"ssconf": {}}
    ),
    "the master lacks its address": Flaw(
        "ENODENET", "is the master, and does not have the master's address 192.0.2.9", WITH_ADDRESS
    ),
    "another node has the master's address": Flaw(
        "ENODENET", "has the address 192.0.2.9, which alpha alone is to have now", WITH_ADDRESS,
        alpha={"master_device": "eth0"}, beta={"master_device": "eth0"},
    ),
    "the master has an address that is not active": Flaw(
        "ENODENET", "has the address 192.0.2.9, which nobody is to have now",
        (Put(replace(CLUSTER, master_ip="192.0.2.9", master_netdev="eth0",
                     master_ip_active=False)),),
        alpha={"master_device": "eth0"},
    ),
    "the master's address is a node's own": Flaw(
        "ECLUSTERCFG", "192.0.2.1 is the own address of beta",
        (Put(replace(CLUSTER, master_ip="192.0.2.1", master_netdev="eth0")),
         *(Put(node(name, primary_ip=f"192.0.2.{number}")) for number, name in
           enumerate(("beta", "alpha", "gamma", "delta"), start=1))),
        alpha={"master_device": "eth0"},
    ),
    "a hypervisor does not work": Flaw(
        "ENODEHV", "the hypervisor kvm does not work here", beta=facts(hypervisors={"kvm": ""})
    ),
    "memory is not locked": Flaw(
        "ENODESETUP", "memory is not locked", beta=facts(memory_locked=False),
        severity=Severity.NOTICE,
    ),
    "a bridge is missing": Flaw("ENODENET", "no bridge br0", beta={"links": {"br0": False}}),
    "guests can pretend to be others": Flaw(
        "ENODENET", "addresses of others: no nft", beta=facts(unguarded="no nft"),
        severity=Severity.NOTICE,
    ),
    "a tap is left": Flaw(
        "ENODENET", "the tap gntnic is left from a guest that is gone", beta={"taps": (TAP,)}
    ),
    "a program that switches nodes is not there": Flaw(
        "ENODEOOBPATH", "Cannot run /etc/gantry/out-of-band/ipmi",
        beta={"programs": {"/a": "", "/b": "Cannot run /etc/gantry/out-of-band/ipmi: not there."}},
    ),
}  # fmt: skip
