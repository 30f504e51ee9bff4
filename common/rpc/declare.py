"""Declare a node service once: the coordinator calls it, noded implements it.

The signature is the schema. From each ``@rpc`` method a ``CallSpec`` is made at import
time; client and server both work from it, so they cannot disagree.
"""

import abc
import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, ParamSpec, TypeVar

import msgspec

LARGEST = 1 << 20  # bytes either way, unless a call says otherwise

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class CallSpec:
    """Everything the two sides must agree on about one call."""

    service: str  # "instances"
    method: str  # "start"
    timeout: float  # seconds until the caller stops waiting
    safe_to_repeat: bool  # may the caller try again after a lost answer?
    fenced: bool  # refused when its epoch is older than the one granted?
    expires: bool  # refused when its caller has given up?
    looks: bool  # can its caller do without an answer of a node that has been silent?
    largest_question: int  # bytes of arguments that the node reads
    largest_answer: int  # bytes of an answer that the caller reads
    arguments: type[msgspec.Struct]
    returns: Any
    summary: str
    one_for_each: str = ""  # the argument of which the answer says something each, in its order

    @cached_property
    def name(self) -> str:
        return f"{self.service}.{self.method}"

    @cached_property
    def path(self) -> str:
        return f"/{self.service}/{self.method}"


class NodeService(abc.ABC):
    """Base of all services; a declaration holds only ``@rpc`` method signatures."""

    prefix: ClassVar[str]
    calls: ClassVar[dict[str, CallSpec]]

    def __init_subclass__(cls, prefix: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if prefix is not None:  # else an implementation, which inherits both
            cls.prefix = prefix
            cls.calls = {
                name: _spec(prefix, name, method)
                for name, method in vars(cls).items()
                if hasattr(method, "__rpc__")
            }


def rpc(
    *,
    timeout: float,
    safe_to_repeat: bool,
    fenced: bool = True,
    expires: bool | None = None,
    looks: bool = False,
    largest_question: int = LARGEST,
    largest_answer: int = LARGEST,
    one_for_each: str = "",
) -> Callable[[Callable[P, Awaitable[R]]], Callable[P, Awaitable[R]]]:
    """Mark a method of a ``NodeService`` as callable over the network; see ``CallSpec``.

    What is fenced is an order, and expires unless it says otherwise.
    """

    def mark(method: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        options = {
            "timeout": timeout,
            "safe_to_repeat": safe_to_repeat,
            "fenced": fenced,
            "expires": fenced if expires is None else expires,
            "looks": looks,
            "largest_question": largest_question,
            "largest_answer": largest_answer,
            "one_for_each": one_for_each,
        }
        method.__rpc__ = options  # type: ignore[attr-defined]
        return method

    return mark


def _spec(prefix: str, name: str, method: Any) -> CallSpec:
    hints = typing.get_type_hints(method)
    returns = hints.pop("return")
    parameters = inspect.signature(method).parameters
    fields = [
        (key, kind)
        if parameters[key].default is inspect.Parameter.empty
        else (key, kind, parameters[key].default)
        for key, kind in hints.items()
    ]
    arguments = msgspec.defstruct(
        f"{prefix}.{name}",
        fields,
        kw_only=True,
        frozen=True,
        forbid_unknown_fields=True,
        omit_defaults=True,  # a node that is older does without an argument that it does not know
    )
    return CallSpec(
        service=prefix,
        method=name,
        arguments=arguments,
        returns=returns,
        summary=(inspect.getdoc(method) or "").partition("\n")[0],
        **method.__rpc__,
    )
