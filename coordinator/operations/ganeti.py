"""Parameters of Ganeti's opcodes that are not ours.

Ganeti's clients send every parameter an opcode has, most of them as they are when nobody asked for
anything. Below is, for each, which values ask for nothing that we do not do anyway; null always
does. Any other value is refused by name: nobody shall believe that it was obeyed.

Source: opcodes.py of Debian's Ganeti 3.0.2.
"""

from collections.abc import Mapping
from typing import Any

from common.errors import InvalidRequest

_NEVER: tuple[Any, ...] = ()  # only null
_OFF = (False,)
_EITHER = (False, True)

_INSTANCE = {"instance_uuid": _NEVER}
_NODE = {"node_uuid": _NEVER}
_MOVE = {
    **_INSTANCE,
    "target_node_uuid": _NEVER,
    "ignore_ipolicy": _EITHER,  # moves are not held to the policy
}
_STATES: dict[str, tuple[Any, ...]] = {"hv_state": ({},), "disk_state": ({},)}

NEUTRAL: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "OP_CLUSTER_RENEW_CRYPTO": {
        "debug": _OFF,
        "renew_ssh_keys": _OFF,
        "ssh_key_bits": _NEVER,
        "ssh_key_type": _NEVER,
        "verbose": _OFF,
    },
    "OP_CLUSTER_SET_PARAMS": {
        **_STATES,
        "force": _EITHER,  # it overrides checks that we do not make
        **dict.fromkeys(
            (
                "add_uids", "beparams", "blacklisted_os",
                "candidate_pool_size", "compression_tools", "data_collector_interval",
                "diskparams", "drbd_helper", "enabled_data_collectors", "enabled_disk_templates",
                "enabled_hypervisors", "enabled_user_shutdown", "file_storage_dir",
                "gluster_storage_dir", "hidden_os", "hvparams", "install_image",
                "instance_communication_network", "ipolicy", "mac_prefix",
                "maintain_node_health", "master_netdev", "master_netmask", "max_tracked_jobs",
                "modify_etc_hosts", "ndparams", "nicparams", "os_hvp", "osparams",
                "osparams_private_cluster", "prealloc_wipe_disks", "remove_uids",
                "reserved_lvs", "shared_file_storage_dir", "uid_pool",
                "use_external_mip_script", "vg_name", "zeroing_image",
            ),
            ({}, []),
        ),
    },
    "OP_CLUSTER_VERIFY": {"debug_simulate_errors": _OFF, "verify_clutter": _OFF},
    "OP_CLUSTER_VERIFY_CONFIG": {"debug_simulate_errors": _OFF},
    "OP_CLUSTER_VERIFY_GROUP": {"debug_simulate_errors": _OFF, "verify_clutter": _OFF},
    "OP_INSTANCE_CHANGE_GROUP": _INSTANCE,
    "OP_INSTANCE_CONSOLE": _INSTANCE,
    "OP_INSTANCE_CREATE": {
        "commit": _OFF,
        "compress": ("none",),
        "file_driver": _NEVER,
        "file_storage_dir": _NEVER,
        "force_variant": _OFF,
        "forthcoming": _OFF,
        "helper_shutdown_timeout": _NEVER,
        "helper_startup_timeout": _NEVER,
        "identify_defaults": _OFF,
        "instance_communication": _OFF,
        "opportunistic_locking": _EITHER,  # places are promised, so nobody waits for nodes
        "osparams_private": ({},),
        "osparams_secret": ({},),
        "pnode_uuid": _NEVER,
        "snode": _NEVER,
        "snode_uuid": _NEVER,
        "source_handshake": _NEVER,
        "source_instance_name": _NEVER,
        "source_shutdown_timeout": (120,),
        "source_x509_ca": _NEVER,
        "src_node": _NEVER,
        "src_node_uuid": _NEVER,
        "src_path": _NEVER,
    },
    "OP_INSTANCE_FAILOVER": {**_MOVE, "cleanup": _OFF},
    "OP_INSTANCE_MIGRATE": {
        **_MOVE,
        "allow_failover": _EITHER,  # programs ask; what does not run is refused, and told how
        "allow_runtime_changes": _EITHER,  # it could shrink a balloon, and there is none
        "ignore_hvversions": _EITHER,  # QEMU itself refuses what it cannot take
    },
    "OP_INSTANCE_MULTI_ALLOC": {"opportunistic_locking": _EITHER},
    "OP_INSTANCE_REBOOT": {**_INSTANCE, "ignore_secondaries": _EITHER},  # there are no mirrors
    "OP_INSTANCE_REMOVE": _INSTANCE,
    "OP_INSTANCE_SHUTDOWN": {**_INSTANCE, "admin_state_source": ("admin",)},
    "OP_INSTANCE_STARTUP": {
        **_INSTANCE,
        "force": _EITHER,  # it starts with half a mirror, and there are none
        "ignore_offline_nodes": _OFF,
        "shutdown_timeout": (120,),
        "startup_paused": _OFF,
    },
    "OP_NODE_ADD": {**_STATES, "node_setup": _OFF, "readd": _OFF},
    "OP_NODE_EVACUATE": {**_NODE, "remote_node": _NEVER, "remote_node_uuid": _NEVER},
    "OP_NODE_POWERCYCLE": _NODE,
    "OP_NODE_REMOVE": _NODE,
    "OP_NODE_SET_PARAMS": {**_NODE, **_STATES, "powered": _NEVER},
    "OP_TEST_DELAY": {
        "interruptible": _OFF,
        "no_locks": _EITHER,  # it takes none
        "on_master": (True,),
        "on_node_uuids": ([],),
        "on_nodes": ([],),
    },
}  # fmt: skip


def known_parameters(
    opcode: str, given: Mapping[str, Any], ours: tuple[str, ...]
) -> dict[str, Any]:
    """Return the parameters that are ours, without those that ask for nothing.

    Args:
        opcode: the operation.
        given: by a client; null stands for what it left out.
        ours: the names of the operation's parameters.

    Raises:
        InvalidRequest: one is neither ours nor Ganeti's, or asks for what we do not do.
    """
    neutral = NEUTRAL.get(opcode, {})
    for name, value in given.items():
        if name in ours or value is None:
            continue
        if name not in neutral:
            from difflib import get_close_matches  # only now is it worth the import

            near = get_close_matches(name, (*ours, *neutral), n=1)
            hint = f" Did you mean “{near[0]}”?" if near else ""
            raise InvalidRequest(f"{opcode} has no parameter “{name}”.{hint}", parameter=name)
        if not any(value == one and type(value) is type(one) for one in neutral[name]):
            raise InvalidRequest(
                f"The parameter {name} of {opcode} is Ganeti's, and Gantry cannot do what it asks "
                f"for here ({str(value)[:80]}); leave it out.",
                parameter=name,
            )
    return {name: given[name] for name in given if name in ours and given[name] is not None}
