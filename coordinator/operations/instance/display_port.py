"""The TCP port of an instance's display: kept for it, wherever it runs."""

from msgspec.structs import replace

from common.errors import NoCapacity
from common.model.hypervisors import HYPERVISORS
from common.model.instance import Instance
from common.model.parameters import sound
from coordinator.operating_systems.hypervisor_layer import base_hvparams
from coordinator.operations.cluster_view import Cluster

PORTS = range(15000, 32000)  # beside those of mirrored disks, below those that kernels choose


def with_port(cluster: Cluster, instance: Instance) -> Instance:
    """Return an instance with a port, if it has a display and no port yet.

    Whoever is given one promises it before waiting for anything.

    Raises:
        NoCapacity: all are in use.
    """
    if instance.network_port or not _has_display(cluster, instance):
        return instance
    promises = cluster.placing.promises.standing(but=cluster.owner)
    used = {each.network_port for each in cluster.config.instances.values()}
    used |= {promise.port for promise in promises}
    port = next((port for port in PORTS if port not in used), None)
    if port is None:
        raise NoCapacity(
            f"All ports for displays, {PORTS[0]} to {PORTS[-1]}, belong to instances.",
            instance=instance.name,
        )
    return replace(instance, network_port=port)


def _has_display(cluster: Cluster, instance: Instance) -> bool:
    base = base_hvparams(cluster.config.cluster, instance.hypervisor, instance.os)
    kind = HYPERVISORS[instance.hypervisor]
    return kind.has_display(sound(kind, base, instance.hvparams))
