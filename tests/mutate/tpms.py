"""Faults in what TPMs promise: that no state of one is lost or overwritten, and nothing else."""

from tests.mutate.fault import Fault

TPMS, ENDS = "tests/contract/test_tpm.py", "tests/contract/test_tpm_ends.py"
NAMES = "tests/sim/test_tpm.py"

OF_TPMS = (
    Fault(
        "TPM beside another", "what is left of a guest is gone before it starts again",
        "noded/hypervisor/kvm/lives.py",
        "                    await self.clear(home)  # without its QEMU, a TPM of it can be left\n",
        "",
        (f"{ENDS} last_one_hangs or did_not_outlive",),
    ),
    Fault(
        "file system formatted", "a TPM overwrites nothing that is no state of a TPM",
        "noded/hypervisor/kvm/tpm.py",
        "if any(start) and not start.startswith(_MAGIC):", "if False:",
        (f"{TPMS} something_else",),
    ),
    Fault(
        "state of a TPM refused", "a guest finds the same TPM at each start",
        "noded/hypervisor/kvm/tpm.py",
        "if any(start) and not start.startswith(_MAGIC):", "if any(start):",
        (f"{TPMS} finds_the_same",),
    ),
    Fault(
        "one of two disks", "a TPM is given none of two disks of one name",
        "coordinator/disks/tpm.py",
        "    if len(called) > 1:\n", "    if False:\n",
        (NAMES,),
    ),
    Fault(
        "TPM looked into by udev", "nobody looks for arrays in what a guest has written",
        "noded/hypervisor/kvm/loop_device.py",
        "fcntl.flock(device, fcntl.LOCK_EX | fcntl.LOCK_NB)", "pass",
        ("tests/contract/test_loop_device.py",),
    ),
    Fault(
        "silent TPM", "an operator is told why a TPM did not come up",
        "noded/hypervisor/kvm/coming_up.py",
        "explain(home.last_words(), home.last_words_of_tpm())", "explain(home.last_words())",
        (f"{TPMS} leaves_nothing",),
    ),
)  # fmt: skip
