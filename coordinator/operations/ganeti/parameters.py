"""What becomes of parameters of Ganeti's opcodes that are not ours.

Ganeti's clients send every parameter an opcode has, most of them as they are when nobody asked for
anything. A parameter that an operation has no field for is accepted while it asks for nothing that
we do not do anyway: when it is null, Ganeti's default, or one of the values below. Any other value
is refused by name: nobody shall believe that it was obeyed.
"""

from collections.abc import Mapping
from typing import Any

from common.errors import InvalidRequest, NotSupported
from coordinator.operations.ganeti.opcodes import Parameter, opcodes

_NO_EFFECT: Mapping[str, Mapping[str, tuple[Any, ...]]] = {
    "OP_BACKUP_EXPORT": {
        "long_sleep": (True,),  # who cannot be copied otherwise is stopped for as long as it takes
    },
    "OP_CLUSTER_SET_PARAMS": {
        "force": (True,),  # it overrides checks that we do not make
        "prealloc_wipe_disks": (True, False),  # what is new, or has grown, is zeros in any case
    },
    "OP_INSTANCE_ACTIVATE_DISKS": {
        "ignore_size": (True,),  # a disk of another size is attached anyway
    },
    "OP_INSTANCE_CREATE": {
        "file_driver": ("loop",),  # Xen's word for any file, which programs send whatever the disks
        "ip_check": (False,),  # nobody looks for who has a name or an address
        "name_check": (False,),
        "opportunistic_locking": (True,),  # nobody waits for nodes: places are promised
        "wait_for_sync": (False,),  # two new copies are equal, and nothing has to be copied
    },
    "OP_INSTANCE_FAILOVER": {
        "ignore_ipolicy": (True,),  # moves are not held to the policy
    },
    "OP_INSTANCE_MIGRATE": {
        "ignore_ipolicy": (True,),
        "allow_runtime_changes": (False,),  # placement counts what a balloon has given back
        "ignore_hvversions": (True,),  # QEMU itself refuses what it cannot take
    },
    "OP_INSTANCE_MOVE": {
        "ignore_consistency": (True,),  # what cannot be stopped stays: it would run twice
    },
    "OP_INSTANCE_MULTI_ALLOC": {"opportunistic_locking": (True,)},
    "OP_INSTANCE_QUERY_DATA": {
        "use_locking": (True,),  # it tells of one state all the same, and waits for no job
    },
    "OP_INSTANCE_RENAME": {"ip_check": (False,), "name_check": (False,)},  # as for CREATE
    "OP_INSTANCE_REPLACE_DISKS": {"ignore_ipolicy": (True,)},  # as for FAILOVER
    "OP_INSTANCE_SET_PARAMS": {
        "file_driver": ("loop",),  # as for CREATE
        "force": (True,),  # it overrides a look at memory, which is taken when it is started
    },
    "OP_INSTANCE_SHUTDOWN": {"admin_state_source": ("admin",)},
    "OP_NODE_ADD": {"node_setup": (True,)},  # the token proves who it is, and nothing goes over ssh
    "OP_NODE_MIGRATE": {"allow_runtime_changes": (False,), "ignore_ipolicy": (True,)},
}


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
    for name, value in given.items():
        if name in ours or value is None:
            continue
        ganetis = opcodes().get(opcode, {})
        if name not in ganetis:
            from difflib import get_close_matches  # only now is it worth the import

            near = get_close_matches(name, (*ours, *ganetis), n=1)
            hint = f" Did you mean “{near[0]}”?" if near else ""
            raise InvalidRequest(f"{opcode} has no parameter “{name}”.{hint}", parameter=name)
        harmless = _NO_EFFECT.get(opcode, {}).get(name, ())
        if not any(_equal(value, one) for one in (*_nothing(ganetis[name]), *harmless)):
            raise InvalidRequest(
                f"The parameter {name} of {opcode} is Ganeti's, and Gantry cannot do what it asks "
                f"for here ({str(value)[:80]}); leave it out.",
                parameter=name,
            )
    return {name: given[name] for name in given if name in ours and given[name] is not None}


def unknown_operation(opcode: str) -> InvalidRequest:
    """Say why there is no operation of this name."""
    if opcode in opcodes():
        return NotSupported(f"{opcode} is Ganeti's; it is known, and not supported yet.")
    return InvalidRequest(f"There is no operation “{opcode}”.")


def _nothing(parameter: Parameter) -> tuple[Any, ...]:
    """Return what a parameter is, but for null, when nobody asks for anything."""
    if parameter.is_required:
        return ()
    return ({}, []) if parameter.default is None else (parameter.default,)


def _equal(value: Any, other: Any) -> bool:
    return bool(value == other) and type(value) is type(other)  # true is no 1
