"""Faults in what guests' machines, nics and wires promise."""

from tests.mutate.fault import Fault

NICS, MODIFIED = "tests/contract/test_nics_of_guests.py", "tests/sim/test_modified_instances.py"
PARAMETERS = "tests/unit/noded/hypervisor/test_kvm_parameters.py"
MACHINES = "tests/contract/test_kvm_machines.py"
DISPLAYS, SWITCHES = "tests/sim/test_displays.py", "tests/unit/noded/test_switches.py"
SWITCH_PLAN = "tests/unit/noded/test_switch_plan.py"
SCRIPTS = "tests/contract/test_ifup.py"
HANDLERS = "tests/unit/noded/handlers/test_instances.py"

OF_MACHINES = (
    Fault(
        "another MAC is not noticed", "a nic that is to have another MAC address gets it at once",
        "noded/hypervisor/kvm/nic_plugging.py",
        "or (device_name(slot) in there and await self._mac(slot) != wanted[nic].mac)",
        "or False",
        (NICS,),
    ),
    Fault(
        "tap left in QEMU",
        "a tap that is given up is free for others",
        "noded/hypervisor/kvm/nic_plugging.py",
        "                await self._unplug(slot)\n"
        "                self._write({each: n for each, n in self._slots()",
        "                self._write({each: n for each, n in self._slots()",
        (NICS,),
    ),
    Fault(
        "unused taps stay", "a guest has the taps of its nics, and no others are left",
        "noded/handlers/instances.py",
        "            finally:\n                await self._remove_unused_taps(guest.id)",
        "            finally:\n                pass",
        (HANDLERS, MODIFIED),
    ),
    Fault(
        "slots of nics begin anew", "a guest that moves keeps the slots of its nics",
        "coordinator/operations/instance/as_it_runs.py",
        "nic_slots=found.nic_slots or {},", "nic_slots={},",
        (MODIFIED,),
    ),
    Fault(
        "all memory again elsewhere", "a guest that moves uses no more memory than before",
        "coordinator/operations/instance/as_it_runs.py",
        "        wanted_memory=found.wanted_memory,\n", "",
        (MODIFIED,),
    ),
    Fault(
        "one port for all", "each display has a port of its own",
        "coordinator/operations/instance/display_port.py",
        "    used |= {promise.port for promise in promises}\n", "",
        (DISPLAYS,),
    ),
    Fault(
        "extra for everybody", "root of the node says whether QEMU is told anything else",
        "noded/hypervisor/rules.py",
        "if extra and not rules.extra:", "if False:",
        (MACHINES,),
    ),
    Fault(
        "CD that can be written to", "what is in a drive cannot be written to",
        "noded/hypervisor/kvm/drives.py",
        '"read-only": True,', '"read-only": False,',
        (PARAMETERS,),
    ),
    Fault(
        "configured card elsewhere", "a guest keeps the machine that it was started with",
        "noded/hypervisor/kvm/launch.py",
        'guest.parameters | {"vga": card(parameters_of(guest))}', "guest.parameters",
        (MACHINES,),
    ),
    Fault(
        "taps of one address", "no two nodes have taps with one address",
        "noded/network/naming.py",
        'return "fe" + random[2:]', 'return "fe:00:00:00:00:01"',
        ("tests/contract/test_network.py",),
    ),
    Fault(
        "old VLANs stay", "a tap is in the VLANs of its nic, and in no others",
        "noded/network/switch_commands.py",
        'lines = [f"vlan del dev {tap} vid 1-4094"]', "lines = []",
        (SWITCHES,),
    ),
    Fault(
        "VLAN of a link forgotten", "a nic whose link is a VLAN is in that VLAN",
        "noded/network/switch_plan.py",
        "return switch.bridge, Vlans(switch.vlan)", "return switch.bridge, vlans",
        (SWITCH_PLAN,),
    ),
    Fault(
        "port of no bridge", "a port of no bridge keeps nobody from seeing the others",
        "noded/network/switch_parse.py",
        '    rows = [row for row in rows if row["_uuid"] in bridge_of]\n', "",
        (SWITCH_PLAN,),
    ),
    Fault(
        "guarded by nobody", "a guest that is to be guarded is in no switch that passes filters by",
        "noded/network/switch_plan.py",
        "if nic.guarded and switch.passes_filters_by:", "if False:",
        (SWITCH_PLAN,),
    ),
    Fault(
        "ports of other nodes taken", "nodes that share a machine spare each other's ports",
        "noded/network/switch_plan.py",
        "if port.nic and port.bridge in devices and", "if port.nic and",
        (SWITCH_PLAN,),
    ),
    Fault(
        "port of a failure stays", "a nic that could not be plugged in leaves no port",
        "noded/network/switch.py",
        "                await self._forget((tap,))\n", "                pass\n",
        (SWITCHES,),
    ),
    Fault(
        "way of others to a script", "what is run as root cannot be replaced by others",
        "noded/hypervisor/kvm/ifup.py",
        "        check_way(real)\n", "",
        (f"{SCRIPTS} others_could_replace",),
    ),
    Fault(
        "script in the way", "a guest without nics starts whatever the script for taps is",
        "noded/hypervisor/kvm/launch.py",
        "            if guest.nics:\n", "            if True:\n",
        (f"{SCRIPTS} without_nics",),
    ),
    Fault(
        "any variable for a script", "a script of root's is told of networks, and nothing else",
        "common/noderpc/network.py",
        r'pattern=r"^NETWORK_[A-Z0-9_]{1,32}\Z"', r'pattern=r"^[A-Z0-9_]{1,32}\Z"',
        (f"{SCRIPTS} nothing_but_networks",),
    ),
    Fault(
        "more tags than fit", "a script is told all tags or none, and its guest starts",
        "coordinator/operations/specs.py",
        'return text if is_line(text) else ""', "return text",
        ("tests/sim/test_networks.py scripts_for_taps",),
    ),
    Fault(
        "program that is not there", "a QEMU that is not in its root directory is refused",
        "noded/hypervisor/kvm/chroot.py",
        "if not Path(program).is_relative_to(_SEEN):", "if False:",
        ("tests/unit/noded/hypervisor/test_chroot.py",),
    ),
)  # fmt: skip
