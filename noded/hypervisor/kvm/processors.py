"""A guest's processors, and on which of the node's they run."""

from collections.abc import Mapping, Sequence

from common.cpu_mask import parse_cpu_mask
from common.errors import InvalidRequest
from common.model.kvm import KvmParameters
from common.names import InstanceName


def topology(parameters: KvmParameters, vcpus: int) -> str:
    """Return how many processors there are, and how they are arranged, for QEMU's ``-smp``."""
    arranged = {
        "cores": parameters.cpu_cores,
        "threads": parameters.cpu_threads,
        "sockets": parameters.cpu_sockets,
    }
    return ",".join([str(vcpus), *(f"{name}={n}" for name, n in arranged.items() if n)])


def check_processors(parameters: KvmParameters, vcpus: int, name: InstanceName) -> None:
    """Refuse what cannot be arranged, or pinned.

    Raises:
        InvalidRequest: says how many there would be.
    """
    cores, threads, sockets = (
        parameters.cpu_cores, parameters.cpu_threads, parameters.cpu_sockets,
    )  # fmt: skip
    product = (cores or 1) * (threads or 1) * (sockets or 1)
    if (cores and threads and sockets and product != vcpus) or vcpus % product:
        raise InvalidRequest(
            f"{name} has {vcpus} processors, and cpu_sockets, cpu_cores and cpu_threads make "
            f"{product}; leave one of them at 0, and QEMU chooses it."
        )
    masks = parse_cpu_mask(parameters.cpu_mask)
    if len(masks) > 1 and len(masks) != vcpus:
        raise InvalidRequest(
            f"The cpu_mask of {name} is for {len(masks)} processors, and it has {vcpus}; give one "
            "list for all of them, or one for each."
        )


def pinning(
    parameters: KvmParameters, threads: Sequence[int], allowed: frozenset[int]
) -> Mapping[int, frozenset[int]]:
    """Return where the threads of a guest's processors are to run; those left out run anywhere.

    Args:
        parameters: of the guest.
        threads: by number of the processor.
        allowed: processors that noded itself may use.

    Raises:
        InvalidRequest: the node has none of those that are asked for.
    """
    masks = parse_cpu_mask(parameters.cpu_mask)
    each = masks * len(threads) if len(masks) == 1 else masks
    pinned = {thread: mask & allowed for thread, mask in zip(threads, each, strict=False) if mask}
    if not all(pinned.values()):
        raise InvalidRequest(
            f"This node has none of the processors that its cpu_mask, {parameters.cpu_mask}, "
            "asks for."
        )
    return pinned
