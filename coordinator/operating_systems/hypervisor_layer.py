"""Hypervisor parameters that the cluster has for the instances of one operating system."""

from common.model.cluster import Cluster
from common.model.parameters import Layer


def base_hvparams(cluster: Cluster, hypervisor: str, os: str) -> Layer:
    """Return what lies below an instance's own hypervisor parameters.

    That of all instances, then what is set for its operating system, then for the variant.
    """
    merged: Layer = dict(cluster.hvparams.get(hypervisor, {}))
    for name in dict.fromkeys((os.partition("+")[0], os)):
        merged |= cluster.os_hvp.get(name, {}).get(hypervisor, {})
    return merged
