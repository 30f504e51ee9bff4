"""UEFI firmware in a guest's machine.

What a guest stores in its firmware's variables goes with its process: each start by us begins with
those of the package, so that nothing has to be kept on any node. Guests boot what is in the usual
place of their disk, and with Secure Boot what is signed by the keys in them.
"""

from typing import Any, NamedTuple

from common.model.kvm_words import Firmware

_CODE, _VARIABLES = "firmware", "variables"


class Opened(NamedTuple):
    """Descriptors of the program, and of the variables, which the guest can write to."""

    code: int
    variables: int


def flash_of(opened: Opened | None) -> dict[str, str]:
    """Return what a machine is told of its firmware."""
    return {} if opened is None else {"pflash0": _CODE, "pflash1": _VARIABLES}


def locked(firmware: Firmware) -> tuple[str, ...]:
    """Return what keeps the guest's system from changing the keys by itself."""
    if firmware is not Firmware.SECURE_BOOT:
        return ()
    return ("-global", "driver=cfi.pflash01,property=secure,value=on")


def flash_nodes(opened: Opened) -> tuple[dict[str, Any], dict[str, Any]]:
    return _node(_CODE, opened.code, read_only=True), _node(_VARIABLES, opened.variables)


def _node(name: str, descriptor: int, *, read_only: bool = False) -> dict[str, Any]:
    file = {"driver": "file", "filename": f"/dev/fdset/{descriptor}", "locking": "off"}
    return {"driver": "raw", "node-name": name, "read-only": read_only, "file": file}
