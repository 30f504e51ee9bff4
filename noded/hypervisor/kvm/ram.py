"""The memory that a guest's machine is made with."""

from common.errors import NodeFailure
from common.model.kvm_words import Accelerator, Firmware
from common.noderpc.instances import GuestSpec

BACKEND = "ram"


def options(
    spec: GuestSpec, accelerator: Accelerator, firmware: Firmware, huge_page: int
) -> tuple[str, ...]:
    """Return how much there is, and of which pages; ``huge_page`` is their size in bytes, or 0."""
    if firmware is Firmware.SECURE_BOOT and not huge_page:
        return ("-m", f"{spec.memory}M")  # the end of memory is the firmware's, in whole MiB
    if not huge_page:
        return ("-m", size(spec, accelerator))
    # By a descriptor of QEMU's own: it opens no file in the file system of huge pages.
    backend = (
        f"memory-backend-memfd,id={BACKEND},size={spec.memory}M,hugetlb=on,"
        f"hugetlbsize={huge_page},prealloc=on"
    )
    return ("-m", f"{spec.memory}M", "-object", backend)


def size(spec: GuestSpec, accelerator: Accelerator) -> str:
    """Return the size of a guest's memory; under TCG 8 KiB less than asked for.

    QEMU before 9.0 loses writes of a TCG guest that moves, and with them the guest: having
    looked which pages have changed, it forgets to watch them again, but only where it looks at
    64 pages at once, which it does if the size is a multiple of 256 KiB. One in three moves of
    a Linux guest ended in a panic with 128 MiB, none of 140 with 8 KiB less, on 7.2.22.
    Source: QEMU commit "physmem: Fix migration dirty bitmap coherency with TCG memory access".
    """
    if accelerator is Accelerator.TCG:
        return f"{spec.memory * 1024 - 8}k"
    return f"{spec.memory}M"


def find_huge_page(path: str, memory: int, mounts: str) -> int:
    """Return the size of the huge pages of a file system, in bytes; 0 without a path.

    Args:
        path: where it is mounted.
        memory: MiB that are to be made of them.
        mounts: as ``/proc/mounts`` has them.

    Raises:
        NodeFailure: none is mounted there, or the memory is no multiple of its pages.
    """
    if not path:
        return 0
    found = [line.split() for line in mounts.splitlines()]
    options = [f[3] for f in found if len(f) > 3 and f[1:3] == [path.rstrip("/"), "hugetlbfs"]]
    if not options:
        raise NodeFailure(
            f"No file system of huge pages (hugetlbfs) is mounted at {path}, where its mem_path "
            "is; mount one, or set mem_path to nothing.",
            path=path,
        )
    page = _page_size(options[-1])
    if (memory << 20) % page:
        raise NodeFailure(
            f"Its memory, {memory} MiB, is no multiple of the huge pages at {path}, which have "
            f"{page >> 20} MiB.",
            path=path,
        )
    return page


def _page_size(options: str) -> int:
    """Read ``pagesize=2M`` among the options of a mount."""
    for option in options.split(","):
        name, _, value = option.partition("=")
        if name == "pagesize" and value[:-1].isdecimal() and value[-1:] in "KMG":
            return int(value[:-1]) << {"K": 10, "M": 20, "G": 30}[value[-1]]
    return 2 << 20
