"""The address that goes with the mastership: whoever is master has it."""

from typing import Annotated

from msgspec import Meta

from common.errors import InvalidRequest
from common.messages import Order
from common.model.cluster import Cluster


class MasterAddress(Order, kw_only=True):
    """An IP address on a network device of the master, with the length of its network's prefix."""

    ip: Annotated[str, Meta(max_length=45)]
    prefix: Annotated[int, Meta(ge=0, le=128)]
    device: Annotated[
        str,
        Meta(pattern=r"^[A-Za-z0-9_.@-]{1,15}$", description="1 to 15 letters, digits and “_.@-”"),
    ]


def wanted_address(cluster: Cluster) -> MasterAddress | None:
    """Return the address that the master is to have now; None if it is to have none."""
    return address_of(cluster) if cluster.master_ip_active else None


def address_of(cluster: Cluster) -> MasterAddress | None:
    """Return the address that is configured, in force or not."""
    if not (cluster.master_ip and cluster.master_netdev):
        return None
    whole = 128 if ":" in cluster.master_ip else 32
    prefix = whole if cluster.master_netmask is None else cluster.master_netmask
    return MasterAddress(ip=cluster.master_ip, prefix=prefix, device=cluster.master_netdev)


def check_address(cluster: Cluster) -> None:
    """Refuse an address of which half is missing, or whose parts do not go together.

    Raises:
        InvalidRequest: says which option is missing, or too large.
    """
    if cluster.master_ip and not cluster.master_netdev:
        raise InvalidRequest(
            f"The address {cluster.master_ip} of the master needs a network device; give one with "
            "--master-netdev."
        )
    if cluster.master_netdev and not cluster.master_ip:
        raise InvalidRequest(
            f"The master's device {cluster.master_netdev} needs an address; give one with "
            "--master-ip, or take both away: --master-ip= --master-netdev=."
        )
    whole = 128 if ":" in cluster.master_ip else 32
    if cluster.master_netmask is not None and cluster.master_netmask > whole:
        raise InvalidRequest(
            f"The netmask {cluster.master_netmask} is longer than an address: {cluster.master_ip} "
            f"has {whole} bits."
        )
