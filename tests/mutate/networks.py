"""Faults in parameters of instances and nics, and in networks."""

from tests.mutate.fault import Fault

BAD_PARAMETERS = "tests/sim/test_bad_parameters.py"

OF_NETWORKS = (
    Fault(
        "started with a default for a bad value", "a bad value of an instance's own keeps it down",
        "coordinator/operations/specs.py",
        "    memory = filled(\n", "    memory = settled(\n",
        (BAD_PARAMETERS,),
        also=(('        what=f"the backend parameters of {instance.name}",\n', ""),),
    ),
    Fault(
        "plugged in with a default for a bad value", "a bad value of a nic's own keeps it out",
        "coordinator/operations/specs.py",
        "filled(NicParameters, sound(NicParameters, base), *layers, what=what)",
        "settled(NicParameters, sound(NicParameters, base), *layers)",
        (BAD_PARAMETERS,),
    ),
    Fault(
        "hypervisor disabled that is in use", "what instances have stays enabled",
        "coordinator/operations/cluster/in_use.py",
        '        ("enabled_hypervisors", "hypervisor"),\n', "",
        (BAD_PARAMETERS,),
    ),
    Fault(
        "address promised to nobody", "jobs at the same time get different addresses",
        "coordinator/operations/placement/numbers.py",
        "(nic for promise in standing for nic in promise.nics)", "()",
        ("tests/sim/test_network_addresses.py",),
    ),
    Fault(
        "nic in a network that is not there", "a group that is not connected gets no such nic",
        "coordinator/operations/addresses.py",
        "        if nic.network and nic.network not in group.networks:\n", "        if False:\n",
        ("tests/sim/test_networks.py",),
    ),
    Fault(
        "addresses of a network found by their texts", "an address is taken however it is written",
        "common/model/address_pool.py",
        "        if found in self._used:\n", "        if address in map(str, self._used):\n",
        ("tests/unit/operations/test_addresses.py", "tests/sim/test_networks_of_version_6.py"),
    ),
    Fault(
        "range of version 6 taken from its nics", "a range stays that nics have addresses of",
        "coordinator/operations/network/words.py",
        "if was.is_inside(str(address)) and not will.is_inside(str(address)):", "if False:",
        ("tests/sim/test_networks_of_version_6.py",),
    ),
)  # fmt: skip
