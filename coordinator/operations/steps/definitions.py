"""What a node has of an operating system, asked of it."""

from collections.abc import Collection

from common.errors import InvalidRequest
from common.model.node import Node, NodeRef
from common.model.os_name import check_variant, read_os_name
from common.noderpc.operating_systems import DefinitionReport, OperatingSystems
from coordinator.operations.cluster_view import Cluster


async def find_definition(
    cluster: Cluster, node: Node | NodeRef, os: str
) -> DefinitionReport | None:
    """Return the definition that an operating system has on a node, usable or not."""
    name = read_os_name(os).definition
    reports = await cluster.call(OperatingSystems, node).definitions()
    return next((report for report in reports if report.name == name), None)


async def check_is_parameter(cluster: Cluster, node: Node, os: str, names: Collection[str]) -> None:
    """Refuse parameters that an operating system does not have, where it declares any.

    Raises:
        InvalidRequest: tells which there are.
    """
    found = await find_definition(cluster, node, os)
    if found is None or not found.parameters:
        return
    known = [name for name, _ in found.parameters]
    for parameter in sorted(names):
        if parameter.lower() not in (name.lower() for name in known):
            raise InvalidRequest(
                f"The operating system {found.name} has no parameter “{parameter}”; it has "
                f"{', '.join(known)}.",
                parameter=parameter,
            )


async def check_is_there(
    cluster: Cluster, node: Node | NodeRef, os: str, *, may_be_unknown: bool = False
) -> None:
    """Refuse an operating system that could not be installed on a node.

    Args:
        cluster: as the job sees it.
        node: where it would be.
        os: its name, with its variant.
        may_be_unknown: the variant need not be one that it declares.

    Raises:
        InvalidRequest: there is no such definition, it cannot be used, or has not that variant.
    """
    found = await find_definition(cluster, node, os)
    if found is None:
        raise InvalidRequest(
            f"Node {node.name} has no operating system “{os}”; “gnt-os list” tells what there is.",
            os=os,
        )
    if found.problem:
        raise InvalidRequest(f"Node {node.name} cannot use {os}: {found.problem}", os=os)
    check_variant(os, found.variants, may_be_unknown=may_be_unknown)
