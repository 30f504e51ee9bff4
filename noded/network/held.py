"""Addresses that this node has for a while: the kernel takes them away when their time is over."""

import logging
from ipaddress import ip_address

from common.errors import Conflict, NodeFailure
from common.model.master_address import MasterAddress
from noded.network.announce import announce
from noded.network.netlink import Address, Netlink, open_netlink

log = logging.getLogger(__name__)


def hold(address: MasterAddress, for_s: int) -> None:
    """Have an address until some seconds from now; one that is here already gets them anew.

    Raises:
        Conflict: it is here for good.
        NodeFailure: there is no such device, or the kernel refuses.
    """
    with open_netlink(f"have the address {address.ip} on {address.device}") as netlink:
        link = netlink.find(address.device)
        if link is None:
            raise NodeFailure(
                f"This node has no network device {address.device} for the master's address; "
                "“gnt-cluster modify --master-netdev” names another.",
                device=address.device,
            )
        is_news = True
        for present in _having(netlink, address.ip):
            if present.is_for_good:
                raise Conflict(
                    f"{address.ip} is an address of this node itself, and cannot go with the "
                    "mastership; take it away, or give the master another.",
                    ip=address.ip,
                )
            if (present.link, present.prefix) == (link.number, address.prefix):
                is_news = False
            else:
                netlink.remove_address(present)
        wanted = Address(ip=address.ip, prefix=address.prefix, link=link.number, seconds=for_s)
        netlink.give_address(wanted)
    if is_news:
        log.info("has the master's address %s on %s", address.ip, address.device)
        try:
            announce(address.ip, address.device)
        except OSError as error:  # it is here all the same, and neighbours forget
            log.warning("cannot tell neighbours of %s: %s", address.ip, error)


def let_go(ip: str) -> None:
    """Take an address away, unless it is here for good."""
    with open_netlink(f"let go of the address {ip}") as netlink:
        for present in _having(netlink, ip):
            if not present.is_for_good:
                netlink.remove_address(present)
                log.info("has the master's address %s no more", ip)


def holds(ip: str) -> str:
    """Return the name of the device that has an address, or nothing."""
    with open_netlink(f"look for the address {ip}") as netlink:
        having = {present.link for present in _having(netlink, ip)}
        return next((link.name for link in netlink.all() if link.number in having), "")


def _having(netlink: Netlink, ip: str) -> list[Address]:
    return [each for each in netlink.addresses() if ip_address(each.ip) == ip_address(ip)]
