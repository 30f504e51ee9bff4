"""Names of operating systems: that of a definition, and after “+” that of one of its variants."""

import re
from typing import NamedTuple

from common.errors import InvalidRequest

# Both become parts of paths, on nodes and in the configuration of definitions.
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"
_NAME = re.compile(rf"({_PART})(?:\+({_PART}))?")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")


class OsName(NamedTuple):
    definition: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.definition}+{self.variant}" if self.variant else self.definition


def read_os_name(text: str) -> OsName:
    """Take a name apart.

    Raises:
        InvalidRequest: says what a name is.
    """
    match = _NAME.fullmatch(text)
    if match is None:
        raise InvalidRequest(
            f"“{text}” is no name of an operating system: letters, digits and “_.-”, and a variant "
            "after “+”, as in debootstrap+default.",
            os=text,
        )
    return OsName(match[1], match[2] or "")


def check_os_parameters(values: dict[str, str], *, what: str) -> None:
    """Refuse what cannot be handed to a script as variables of its environment.

    Raises:
        InvalidRequest: names the parameter; its value is told to nobody.
    """
    for name, value in values.items():
        if not _PARAMETER.fullmatch(name):
            raise InvalidRequest(
                f"“{name}” is no name of a parameter in {what}: letters, digits and “_-”.",
                parameter=name,
            )
        if "\0" in value:
            raise InvalidRequest(
                f"The parameter {name} in {what} contains a zero byte.", parameter=name
            )


def check_variant(os: str, variants: tuple[str, ...], *, may_be_unknown: bool) -> None:
    """Refuse a variant that is not among those declared; one has to be chosen if there are any.

    Raises:
        InvalidRequest: tells which there are.
    """
    name, variant = read_os_name(os)
    if not variant and variants:
        raise InvalidRequest(
            f"The operating system {name} has variants; say which: "
            f"{', '.join(f'{name}+{each}' for each in variants)}."
        )
    if variant and not variants:
        raise InvalidRequest(f"The operating system {name} has no variants; leave +{variant} out.")
    if variant and variant not in variants and not may_be_unknown:
        raise InvalidRequest(
            f"The operating system {name} declares no variant “{variant}”, but "
            f"{', '.join(variants)}; --force-variant uses it all the same."
        )
