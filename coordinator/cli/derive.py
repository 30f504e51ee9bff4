"""Command lines made from operations: the fields are the options.

See ``coordinator.operations.parameter`` for how a field says what it looks like.
"""

import argparse
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from common.errors import InvalidRequest
from common.messages import Order
from common.model.disk_parameters import DISK_PARAMETERS
from common.model.hypervisors import HYPERVISORS
from common.model.parameters import Backend, NicParameters, NodeParameters
from common.model.uid_pool import parse_uid_pool
from coordinator.cli.address import find_address
from coordinator.cli.keyval import (
    parse_changes,
    parse_devices,
    parse_identkeyval,
    parse_keyval,
    parse_numbered,
    split_escaped,
)
from coordinator.cli.parser import Parser
from coordinator.cli.policy import add_policy, read_policy
from coordinator.cli.secret import add_ways, read_secret, read_whole
from coordinator.cli.typed import bare, is_enum, read_plain, read_yes_no, typed
from coordinator.operations.parameter import Parameter, Shorthand, Syntax, parameters_of

_PARAMETERS: dict[str, tuple[type[msgspec.Struct], ...]] = {  # field -> what declares its keys
    "beparams": (Backend,),
    "hvparams": tuple(HYPERVISORS.values()),
    "ndparams": (NodeParameters,),
    "nicparams": (NicParameters,),
}
_LAYERS: dict[str, Mapping[str, type[msgspec.Struct]]] = {  # field -> what declares each layer's
    "diskparams": DISK_PARAMETERS,
    "hvparams": HYPERVISORS,
}


def add_fields(parser: Parser, kind: type[Order], *, many: str = "", every: str = "") -> None:
    """Add the options and arguments that ``kind``, an operation as a rule, declares.

    Args:
        parser: to add them to; it then yields only what was given.
        kind: the class.
        many: the argument that takes any number of words, which choose objects.
        every: likewise, where no word at all chooses all objects there are.
    """
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    hints = typing.get_type_hints(kind)
    for name, parameter in parameters_of(kind).items():
        if parameter.is_hidden:
            continue
        if parameter.is_argument:
            some = "+" if fields[name].required else "*"
            single = None if fields[name].required else "?"
            words = some if parameter.syntax is Syntax.WORDS else single
            nargs = "*" if name in (many, every) else words
            metavar = shown(name, parameter)
            default = argparse.SUPPRESS if nargs == "?" else None
            told = f"{parameter.help}; none: all of them" if name == every else parameter.help
            parser.add_argument(name, metavar=metavar, help=told, nargs=nargs, default=default)
        elif parameter.syntax is Syntax.JOIN_TOKEN:
            add_ways(parser, name, parameter)
        elif parameter.syntax is Syntax.POLICY:
            add_policy(parser, name, parameter)
        else:
            # “None at all” and “this one” cannot be meant together.
            denied = any(shorthand.denies for shorthand in parameter.shorthands)
            options = parser.add_mutually_exclusive_group() if denied else parser
            options.add_argument(
                *parameter.flags,
                dest=name,
                help=_help(parameter, fields[name].default),
                required=fields[name].required,
                default=argparse.SUPPRESS,
                **_action(name, parameter, hints[name]),
            )
            for shorthand in parameter.shorthands:
                _add_shorthand(options, name, shorthand)


def read_fields(kind: type[Order], options: argparse.Namespace) -> dict[str, Any]:
    """Return the fields that the command line gives, as JSON values.

    Raises:
        InvalidRequest: a word is not what it should be; names the option.
        NodeFailure: ssh did not bring what it was sent for.
    """
    hints = typing.get_type_hints(kind)
    given = {}
    for name, parameter in parameters_of(kind).items():
        if not hasattr(options, name) and parameter.instead is None:
            continue
        word = getattr(options, name, list(parameter.instead or ()))
        if isinstance(word, bool) or parameter.syntax is Syntax.FLAG:
            given[name] = bool(word)  # a flag that is not there instead of one that is left out
            continue
        try:
            given |= _read(name, parameter, hints[name], word)
        except InvalidRequest as error:
            label = parameter.flags[-1] if parameter.flags else shown(name, parameter)
            label = "--ipolicy" if parameter.syntax is Syntax.POLICY else label
            raise InvalidRequest(f"{label}: {error.message}") from error
    return given


_METAVARS = {
    Syntax.ADDRESS: "IP|HOST",
    Syntax.CHANGES: "add[:NAME=VALUE,…]|N[:NAME=VALUE,…]|N:remove",
    Syntax.DEVICES: "N:NAME=VALUE,…",
    Syntax.HYPERVISOR: "[HYPERVISOR:]NAME=VALUE,…",
    Syntax.KEYVAL: "NAME=VALUE,…",
    Syntax.LIST: "A,B,…",
    Syntax.NODES: "NODE[:SECONDARY]",
    Syntax.NODE_LIST: "NODE[:SECONDARY]",
    Syntax.NUMBERED: "N[:NAME=VALUE,…]",
    Syntax.PEM_FILE: "FILE",
    Syntax.SECRET_FILE: "FILE",
    Syntax.UIDS: "FIRST-LAST,…",
    Syntax.YES_NO: "yes|no",
}


def _action(name: str, parameter: Parameter, hint: Any) -> dict[str, Any]:
    match parameter.syntax:
        case Syntax.FLAG:
            return {"action": "store_true"}
        case Syntax.NO_FLAG:
            return {"action": "store_false"}
        case Syntax.CHANGES | Syntax.DEVICES | Syntax.LAYERS | Syntax.NUMBERED as repeated:
            metavar = parameter.metavar or _METAVARS[repeated]
            return {"action": "append", "metavar": metavar}
        case syntax:
            kind = bare(hint)
            plain = "|".join(kind) if is_enum(kind) else shown(name, parameter)
            return {"metavar": parameter.metavar or _METAVARS.get(syntax, plain)}


def _help(parameter: Parameter, default: Any) -> str:
    """Return what an option is for, and what it is when it is not given, if that says something."""
    if isinstance(default, bool) or not default or not isinstance(default, str | int | tuple):
        return parameter.help
    shown = ",".join(default) if isinstance(default, tuple) else str(default)
    return f"{parameter.help} ({shown})"


def _add_shorthand(options: argparse._ActionsContainer, name: str, shorthand: Shorthand) -> None:
    if shorthand.template:
        options.add_argument(
            *shorthand.flags,
            dest=name,
            help=shorthand.help,
            metavar="SIZE",
            action="append",
            type=shorthand.template.format,
            default=argparse.SUPPRESS,
        )
    else:
        const: Any = [] if shorthand.value is None else shorthand.value
        options.add_argument(
            *shorthand.flags,
            dest=name,
            help=shorthand.help,
            action="store_const",
            const=const,
            default=argparse.SUPPRESS,
        )


def shown(name: str, parameter: Parameter) -> str:
    """Return what stands for the value in a usage: ``NODE`` for ``--target-node``."""
    word = parameter.flags[-1].rpartition("-")[2] if parameter.flags else name
    return word.removesuffix("_name").upper()


def _read(name: str, parameter: Parameter, hint: Any, word: Any) -> dict[str, Any]:
    match parameter.syntax:
        case Syntax.FLAG | Syntax.NO_FLAG | Syntax.PLAIN:
            return {name: read_plain(word, hint)}
        case Syntax.KEYVAL:
            return {name: typed(parse_keyval(word), *_PARAMETERS.get(name, ()))}
        case Syntax.HYPERVISOR:
            return _hypervisor(name, word)
        case Syntax.NODES:
            first, _, second = word.partition(":")
            return {name: first} | ({"snode": second} if second else {})
        case Syntax.LAYERS:
            return {name: _layers(_LAYERS[name], word)}
        case syntax:
            return {name: _READ[syntax](word)}


def _layers(
    declared: Mapping[str, type[msgspec.Struct]], words: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Read ``kvm:acpi=no``, any number of times, as the parameters of each name."""
    layers: dict[str, dict[str, Any]] = {}
    for word in words:
        name, values = parse_identkeyval(word)
        kinds = (declared[name],) if name in declared else ()
        layers[name] = layers.get(name, {}) | typed(values, *kinds)
    return layers


def _hypervisor(name: str, word: str) -> dict[str, Any]:
    """Read ``kvm:acpi=no`` or ``acpi=no``: the text before a colon is the hypervisor's name."""
    if ":" in word.partition("=")[0] or word in HYPERVISORS:
        kind, values = parse_identkeyval(word)
        return {"hypervisor": kind, name: typed(values, *_PARAMETERS[name])}
    return {name: typed(parse_keyval(word), *_PARAMETERS[name])}


_READ: dict[Syntax, Callable[[Any], Any]] = {
    Syntax.ADDRESS: find_address,
    Syntax.CHANGES: parse_changes,
    Syntax.DEVICES: parse_devices,
    Syntax.JOIN_TOKEN: read_secret,
    Syntax.LIST: lambda word: split_escaped(word) if word else [],
    Syntax.NODE_LIST: lambda word: word.split(":"),
    Syntax.NUMBERED: parse_numbered,
    Syntax.PEM_FILE: read_whole,
    Syntax.POLICY: read_policy,
    Syntax.SECRET_FILE: read_secret,
    Syntax.UIDS: parse_uid_pool,
    Syntax.WORDS: list,
    Syntax.YES_NO: read_yes_no,
}
