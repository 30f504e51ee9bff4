"""Which module has which operation.

Commands load only the one they need; the coordinator loads them all. A test holds this list
against the files.
"""

from importlib import import_module
from typing import Any

from common.errors import InvalidRequest
from coordinator.operations.base import REGISTRY, Operation

MODULES = {
    "OP_CLUSTER_DESTROY": "coordinator.operations.cluster.destroy",
    "OP_CLUSTER_RENEW_CRYPTO": "coordinator.operations.cluster.renew_crypto",
    "OP_CLUSTER_SET_PARAMS": "coordinator.operations.cluster.modify",
    "OP_CLUSTER_VERIFY": "coordinator.operations.cluster.verify",
    "OP_CLUSTER_VERIFY_CONFIG": "coordinator.operations.cluster.verify_config",
    "OP_CLUSTER_VERIFY_GROUP": "coordinator.operations.cluster.verify_group",
    "OP_INSTANCE_CHANGE_GROUP": "coordinator.operations.instance.change_group",
    "OP_INSTANCE_CONSOLE": "coordinator.operations.instance.console",
    "OP_INSTANCE_CREATE": "coordinator.operations.instance.create",
    "OP_INSTANCE_FAILOVER": "coordinator.operations.instance.failover",
    "OP_INSTANCE_MIGRATE": "coordinator.operations.instance.migrate",
    "OP_INSTANCE_MULTI_ALLOC": "coordinator.operations.instance.create_many",
    "OP_INSTANCE_REBOOT": "coordinator.operations.instance.reboot",
    "OP_INSTANCE_REMOVE": "coordinator.operations.instance.remove",
    "OP_INSTANCE_SHUTDOWN": "coordinator.operations.instance.shutdown",
    "OP_INSTANCE_STARTUP": "coordinator.operations.instance.startup",
    "OP_NODE_ADD": "coordinator.operations.node.add",
    "OP_NODE_EVACUATE": "coordinator.operations.node.evacuate",
    "OP_NODE_POWERCYCLE": "coordinator.operations.node.powercycle",
    "OP_NODE_REMOVE": "coordinator.operations.node.remove",
    "OP_NODE_SET_PARAMS": "coordinator.operations.node.modify",
    "OP_TEST_DELAY": "coordinator.operations.test.delay",
}


def find_operation(opcode: str) -> type[Operation[Any]]:
    """Return an operation's class, loading its module only.

    Raises:
        InvalidRequest: there is no such operation.
    """
    if opcode not in MODULES:
        raise InvalidRequest(f"There is no operation “{opcode}”.")
    import_module(MODULES[opcode])
    return REGISTRY[opcode]


def load_all() -> None:
    """Load every operation."""
    for opcode in MODULES:
        find_operation(opcode)
