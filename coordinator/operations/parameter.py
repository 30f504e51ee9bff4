"""How a field of an operation appears on the command line and in the manual.

Attached to the field's type, so that the field itself stays plain:

    instance_name: Annotated[InstanceName, argument("instance to move")]
    allow_failover: Annotated[bool, option("--allow-failover", help="else stop it")] = False
"""

import typing
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import NamedTuple

from common.messages import Order

ASK = "?"  # instead of a value that the operator is asked for before anything is submitted
LOST = ""  # instead of a secret whose coordinator has ended


class Syntax(StrEnum):
    """How the words of the command line become the field's value."""

    PLAIN = "plain"  # by the field's type: text, number, size in MiB, choice of an enum
    FLAG = "flag"  # present: True
    NO_FLAG = "no-flag"  # present: False, as in --no-start
    YES_NO = "yes-no"  # --offline=yes
    KEYVAL = "keyval"  # k=v,k2=v2 -> a dict
    HYPERVISOR = "hypervisor"  # kvm:k=v -> this field gets the dict, ``hypervisor`` the name
    LAYERS = "layers"  # kvm:k=v, repeated -> {"kvm": {"k": v}}
    DEVICES = "devices"  # 0:k=v, repeated -> a list of dicts in the order of their numbers
    CHANGES = "changes"  # add:k=v, 0:k=v, 0:remove, repeated -> [["add", -1, {"k": "v"}], …]
    NUMBERED = "numbered"  # 0, 1:k=v, repeated -> [[0, {}], [1, {"k": "v"}]]
    NODES = "nodes"  # a:b -> this field gets a, ``snode`` b; a alone: only this field
    NODE_LIST = "node-list"  # a:b -> ["a", "b"]
    POLICY = "policy"  # --ipolicy-vcpu-ratio=4 and the like -> a dict, as Ganeti writes policies
    WORDS = "words"  # the words that are left -> ["a", "b"]
    LIST = "list"  # a,b -> ["a", "b"]
    UIDS = "uids"  # 70000-70099,70200 -> [[70000, 70099], [70200, 70200]]
    ADDRESS = "address"  # an IP address, or a host name that leads to one
    SECRET_FILE = "secret-file"  # noqa: S105 -- a file name, or - for standard input
    PEM_FILE = "pem-file"  # the same, and all of it
    JOIN_TOKEN = "join-token"  # noqa: S105 -- a file name, or - for standard input; or by --ssh


class Shorthand(NamedTuple):
    """Another option for the same field: ``-s 10G`` for ``--disk 0:size=10G``.

    ``template`` is what the field's option would be given. None: the option takes nothing, and the
    field is ``value``; None: an empty list.
    """

    flags: tuple[str, ...]
    help: str
    template: str = ""
    value: bool | str | None = None

    @property
    def denies(self) -> bool:
        """Tell whether it cannot be given together with the field's option."""
        return not self.template


class Parameter(NamedTuple):
    """``instead`` is what a command gives when its words do not; programs say it themselves.

    Of a flag, an empty one stands for False.
    """

    help: str
    flags: tuple[str, ...] = ()  # of an option
    is_hidden: bool = False  # from command lines; programs may give it
    syntax: Syntax = Syntax.PLAIN
    metavar: str = ""
    secret: bool = False  # a text that is never stored, shown or logged; may become LOST
    shorthands: tuple[Shorthand, ...] = ()
    instead: tuple[str, ...] | None = None

    @property
    def is_argument(self) -> bool:
        """Tell whether a command takes it by its position."""
        return not self.flags and not self.is_hidden


@cache  # reading the annotations takes longer than all the rest of a short job
def parameters_of(kind: type[Order]) -> Mapping[str, Parameter]:
    """Return how each field is spelled on the command line, by its name on the wire, in order."""
    on_wire = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    return {
        on_wire[name]: _found_in(hint.__metadata__)
        for name, hint in typing.get_type_hints(kind, include_extras=True).items()
        if name in on_wire and hasattr(hint, "__metadata__")
    }


def _found_in(metadata: Iterable[object]) -> Parameter:
    return next((each for each in metadata if isinstance(each, Parameter)), Parameter(""))


def argument(help: str, *, syntax: Syntax = Syntax.PLAIN) -> Parameter:
    """Declare a positional parameter."""
    return Parameter(help, syntax=syntax)


def option(
    *flags: str,
    help: str,
    syntax: Syntax = Syntax.PLAIN,
    metavar: str = "",
    secret: bool = False,
    shorthands: tuple[Shorthand, ...] = (),
    instead: tuple[str, ...] | None = None,
) -> Parameter:
    """Declare a parameter with its command-line spellings."""
    return Parameter(
        help,
        flags,
        syntax=syntax,
        metavar=metavar,
        secret=secret,
        shorthands=shorthands,
        instead=instead,
    )


def confidential(help: str) -> Parameter:
    """Declare a parameter as ``hidden`` does, which is never stored, shown or logged."""
    return Parameter(help, is_hidden=True, secret=True)


def hidden(help: str) -> Parameter:
    """Declare a parameter that programs may give but no command line option sets."""
    return Parameter(help, is_hidden=True)
