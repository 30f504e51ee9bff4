"""Command lines made from operations: the fields are the options.

See ``coordinator.operations.parameter`` for how a field says what it looks like.
"""

import argparse
import enum
import math
import typing
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Any

import msgspec

from common.errors import InvalidRequest
from common.messages import Order
from common.model.hypervisors import HYPERVISORS
from common.model.parameters import DEFAULT, Backend, NicParameters, NodeParameters
from common.names import MiB
from common.units import parse_mib
from coordinator.cli.address import find_address
from coordinator.cli.keyval import (
    parse_devices,
    parse_identkeyval,
    parse_keyval,
    split_escaped,
)
from coordinator.cli.parser import Parser
from coordinator.cli.secret import add_ways, read_secret
from coordinator.operations.parameter import Parameter, Shorthand, Syntax, parameters_of

_YES_NO = {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}
_PARAMETERS: dict[str, tuple[type[msgspec.Struct], ...]] = {  # field -> what declares its keys
    "beparams": (Backend,),
    "hvparams": tuple(HYPERVISORS.values()),
    "ndparams": (NodeParameters,),
    "nicparams": (NicParameters,),
}


def add_fields(parser: Parser, kind: type[Order], *, many: str = "") -> None:
    """Add the options and arguments that ``kind``, an operation as a rule, declares.

    Args:
        parser: to add them to; it then yields only what was given.
        kind: the class.
        many: the argument that takes any number of words, which choose objects.
    """
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    hints = typing.get_type_hints(kind)
    for name, parameter in parameters_of(kind).items():
        if parameter.is_hidden:
            continue
        if parameter.is_argument:
            nargs = "*" if name == many else None
            metavar = _shown(name, parameter)
            parser.add_argument(name, metavar=metavar, help=parameter.help, nargs=nargs)
        elif parameter.syntax is Syntax.JOIN_TOKEN:
            add_ways(parser, name, parameter)
        else:
            # “None at all” and “this one” cannot be meant together.
            denied = any(not shorthand.template for shorthand in parameter.shorthands)
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
        if isinstance(word, bool):
            given[name] = word
            continue
        try:
            given |= _read(name, parameter, hints[name], word)
        except InvalidRequest as error:
            label = parameter.flags[-1] if parameter.flags else _shown(name, parameter)
            raise InvalidRequest(f"{label}: {error.message}") from error
    return given


def typed(values: dict[str, Any], *kinds: type[msgspec.Struct]) -> dict[str, Any]:
    """Turn the text in ``values`` into what the parameters of ``kinds`` are declared to be.

    A key that nobody declares keeps its text; whoever gets it will say that it is unknown.

    Raises:
        InvalidRequest: a text is not of the declared type.
    """
    hints: dict[str, Any] = {"memory": MiB}  # Ganeti's word for maxmem and minmem
    for kind in kinds:
        hints |= typing.get_type_hints(kind)
    for key, value in values.items():
        if value is True and key in hints and _bare(hints[key]) is not bool:
            raise InvalidRequest(f"{key} needs a value, as in {key}=VALUE.")
    return {
        key: _named(key, value, hints[key])
        if isinstance(value, str) and value != DEFAULT and key in hints
        else value
        for key, value in values.items()
    }


_METAVARS = {
    Syntax.ADDRESS: "IP|HOST",
    Syntax.DEVICES: "N:NAME=VALUE,…",
    Syntax.HYPERVISOR: "[HYPERVISOR:]NAME=VALUE,…",
    Syntax.HYPERVISORS: "HYPERVISOR:NAME=VALUE,…",
    Syntax.KEYVAL: "NAME=VALUE,…",
    Syntax.LIST: "A,B,…",
    Syntax.YES_NO: "yes|no",
}


def _action(name: str, parameter: Parameter, hint: Any) -> dict[str, Any]:
    match parameter.syntax:
        case Syntax.FLAG:
            return {"action": "store_true"}
        case Syntax.NO_FLAG:
            return {"action": "store_false"}
        case Syntax.DEVICES | Syntax.HYPERVISORS as repeated:
            return {"action": "append", "metavar": _METAVARS[repeated]}
        case syntax:
            kind = _bare(hint)
            plain = "|".join(kind) if _is_enum(kind) else _shown(name, parameter)
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
        options.add_argument(
            *shorthand.flags,
            dest=name,
            help=shorthand.help,
            action="store_const",
            const=[],
            default=argparse.SUPPRESS,
        )


def _shown(name: str, parameter: Parameter) -> str:
    """Return what stands for the value in a usage: ``NODE`` for ``--target-node``."""
    word = parameter.flags[-1].rpartition("-")[2] if parameter.flags else name
    return word.removesuffix("_name").upper()


def _read(name: str, parameter: Parameter, hint: Any, word: Any) -> dict[str, Any]:
    match parameter.syntax:
        case Syntax.FLAG | Syntax.NO_FLAG | Syntax.PLAIN:
            return {name: _plain(word, _bare(hint))}
        case Syntax.YES_NO:
            return {name: _yes_no(word)}
        case Syntax.KEYVAL:
            return {name: typed(parse_keyval(word), *_PARAMETERS.get(name, ()))}
        case Syntax.HYPERVISOR:
            return _hypervisor(name, word)
        case Syntax.HYPERVISORS:
            return {name: read_hypervisors(word)}
        case Syntax.DEVICES:
            return {name: parse_devices(word)}
        case Syntax.LIST:
            return {name: split_escaped(word)}
        case Syntax.ADDRESS:
            return {name: find_address(word)}
        case Syntax.JOIN_TOKEN:
            return {name: read_secret(word)}


def read_hypervisors(words: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Read ``kvm:acpi=no``, any number of times, as the parameters of each hypervisor.

    Raises:
        InvalidRequest: a word has another form, or a value is not of its declared type.
    """
    layers: dict[str, dict[str, Any]] = {}
    for word in words:
        name, values = parse_identkeyval(word)
        declared = (HYPERVISORS[name],) if name in HYPERVISORS else ()
        layers[name] = layers.get(name, {}) | typed(values, *declared)
    return layers


def _hypervisor(name: str, word: str) -> dict[str, Any]:
    """Read ``kvm:acpi=no`` or ``acpi=no``: the text before a colon is the hypervisor's name."""
    if ":" in word.partition("=")[0] or word in HYPERVISORS:
        kind, values = parse_identkeyval(word)
        return {"hypervisor": kind, name: typed(values, *_PARAMETERS[name])}
    return {name: typed(parse_keyval(word), *_PARAMETERS[name])}


def _named(key: str, text: str, hint: Any) -> Any:
    try:
        return _plain(text, _bare(hint))
    except InvalidRequest as error:
        raise InvalidRequest(f"{key}: {error.message}") from error


def _plain(text: str, kind: Any) -> Any:
    if kind is MiB:
        return parse_mib(text)
    if kind is bool:
        return _yes_no(text)
    if kind in (int, float):
        try:
            number = kind(text)
        except ValueError as error:
            raise InvalidRequest(f"“{text}” is no number.") from error
        if isinstance(number, float) and not math.isfinite(number):  # of which JSON knows none
            raise InvalidRequest(f"“{text}” is no number that can be sent.")
        return number
    if _is_enum(kind) and text not in list(kind):
        raise InvalidRequest(f"“{text}” is none of {', '.join(kind)}.")
    return text


def _yes_no(text: str) -> bool:
    if text.lower() not in _YES_NO:
        raise InvalidRequest(f"“{text}” is neither yes nor no.")
    return _YES_NO[text.lower()]


def _bare(hint: Any) -> Any:
    """Return the type without Annotated and without None."""
    if typing.get_origin(hint) is typing.Annotated:
        return _bare(hint.__origin__)
    if typing.get_origin(hint) in (typing.Union, UnionType):
        return next(_bare(kind) for kind in typing.get_args(hint) if kind is not NoneType)
    return hint


def _is_enum(kind: Any) -> bool:
    return isinstance(kind, enum.EnumMeta)
