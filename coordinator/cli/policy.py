"""The options that make up an instance policy: one field, spelled as Ganeti spells its parts.

Source: gnt-group(8) and gnt-cluster(8) of Ganeti 3.0.
"""

import argparse
from collections.abc import Mapping
from typing import Any

from common.errors import InvalidRequest
from common.units import parse_mib
from coordinator.cli.keyval import DEFAULT, parse_identkeyval, parse_keyval, split_escaped
from coordinator.cli.typed import read_plain
from coordinator.operations.parameter import Parameter

_SPEC = ("cpu-count", "disk-count", "disk-size", "memory-size", "nic-count", "spindle-use")
_SIZES = ("disk-size", "memory-size")
_KEYS = {
    "--ipolicy-std-specs": "std",
    "--ipolicy-bounds-specs": "minmax",
    "--ipolicy-disk-templates": "disk-templates",
    "--ipolicy-vcpu-ratio": "vcpu-ratio",
    "--ipolicy-spindle-ratio": "spindle-ratio",
}
_SAID = {
    "std": ("NAME=N,…", f"what an instance is by default: {', '.join(_SPEC)}"),
    "minmax": (
        "min:NAME=N,…/max:NAME=N,…[//…]",
        f"smallest and largest instances: {', '.join(_SPEC)}; // is an alternative",
    ),
    "disk-templates": ("A,B,…", "disk templates that are allowed"),
    "vcpu-ratio": ("N", "virtual processors for each real one"),
    "spindle-ratio": ("N", "instances for each spindle"),
}


class _Part(argparse.Action):
    """Collects what is said of parts, each by its key, in one place."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 -- argparse's
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        key = _KEYS[str(option_string)]
        setattr(namespace, self.dest, {**getattr(namespace, self.dest, {}), key: values})


def add_policy(parser: argparse.ArgumentParser, name: str, parameter: Parameter) -> None:
    """Add the options for the parts of the policy that is the field ``name``."""
    for flag in parameter.flags:
        metavar, help = _SAID[_KEYS[flag]]
        parser.add_argument(
            flag,
            dest=name,
            action=_Part,
            metavar=metavar,
            help=f"{help}; {parameter.help}",
            default=argparse.SUPPRESS,
        )


def read_policy(words: dict[str, str]) -> dict[str, Any]:
    """Return the parts that are given, as Ganeti writes them.

    Raises:
        InvalidRequest: names what is not as it should be.
    """
    return {key: word if word == DEFAULT else _read(key, word) for key, word in words.items()}


def write_specs(policy: Mapping[str, Any]) -> str:
    """Return the options that say what sizes a cluster's policy has, as Ganeti writes them."""
    bounds = (
        f"min:{_written(each['min'])}/max:{_written(each['max'])}" for each in policy["minmax"]
    )
    return (
        f"--ipolicy-std-specs {_written(policy['std'])} --ipolicy-bounds-specs {'//'.join(bounds)}"
    )


def write_own_policy(policy: Mapping[str, Any]) -> str:
    """Return the options that say what a group's own policy has; nothing of what it has not."""
    words = []
    if "minmax" in policy:
        bounds = (
            f"min:{_written(each['min'])}/max:{_written(each['max'])}" for each in policy["minmax"]
        )
        words.append(f"--ipolicy-bounds-specs {'//'.join(bounds)}")
    if "disk-templates" in policy:
        words.append(f"--ipolicy-disk-templates {','.join(policy['disk-templates'])}")
    words += [
        f"--ipolicy-{name} {policy[name]}"
        for name in ("vcpu-ratio", "spindle-ratio")
        if name in policy
    ]
    return " ".join(words)


def _written(spec: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={spec[name]}" for name in _SPEC)


def _read(key: str, word: str) -> Any:
    if key == "disk-templates":
        return split_escaped(word)
    if key == "std":
        return _read_spec(key, parse_keyval(word))
    if key == "minmax":
        return [_read_bounds(each) for each in word.split("//")]
    try:
        return read_plain(word, float)
    except InvalidRequest as error:
        raise InvalidRequest(f"{key}: {error.message}") from error


def _read_bounds(text: str) -> dict[str, Any]:
    bounds = dict(map(parse_identkeyval, text.split("/")))
    if sorted(bounds) != ["max", "min"] or text.count("/") != 1:
        raise InvalidRequest(f"“{text}” is not one min:… and one max:….")
    return {ident: _read_spec(ident, values) for ident, values in bounds.items()}


def _read_spec(ident: str, values: dict[str, Any]) -> dict[str, int]:
    for wrong, what in (
        (sorted(set(_SPEC) - values.keys()), "does not say"),
        (sorted(values.keys() - set(_SPEC)), "cannot say"),
    ):
        if wrong:
            raise InvalidRequest(f"{ident} {what} {', '.join(wrong)}.")
    return {name: _number(name, str(value)) for name, value in values.items()}


def _number(name: str, text: str) -> int:
    if name in _SIZES:
        return parse_mib(text)
    if not (text.isascii() and text.isdecimal()):
        raise InvalidRequest(f"{name} is a number, not “{text}”.")
    return int(text)
