"""Which files of this node guests may be given, and whose processes they are: root's own word.

Who gives orders to the cluster chooses among these, and can add nothing. A line is a word and
its value; ``#`` begins a comment::

    program /usr/bin/qemu-system-x86_64   a QEMU, or a directory with several
    image   /srv/images                   kernels, initrds and CD images, or a directory of them
    secret  /etc/gantry/vnc-passwords     passwords and keys of displays, or a directory of them
    spice   /etc/gantry/secrets/spice     a directory, the certificate of encrypted SPICE displays
    users   70000-79999                   user ids, one for each guest; in use by nobody else
    extra   allowed                       whatever else QEMU is to be told (kvm_extra)
"""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from common.errors import NodeFailure
from common.model.uid_pool import HIGHEST, LOWEST

_USERS = re.compile(r"(\d{1,10})-(\d{1,10})")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_LONGEST_PASSWORD = 8  # of VNC, which leaves out the rest (RFC 6143, 7.2.2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What root of this node allows; as it is where there is no file."""

    source: str  # the file, for messages
    programs: tuple[str, ...] = ("/usr/bin/qemu-system-x86_64",)
    images: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    spice: str = ""
    extra: bool = False
    # Free by the conventions of systemd, Debian, and useradd's subordinate ids.
    users: range = range(70_000, 80_000)


def read_rules(path: Path) -> Rules:
    """Read the rules of this node.

    Raises:
        NodeFailure: somebody else than root can write them, or a line makes no sense.
    """
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            found = os.fstat(file.fileno())
            text = file.read()
    except FileNotFoundError:
        return Rules(source=str(path))
    except OSError as error:
        raise NodeFailure(f"Cannot read {path}: {error.strerror}.", path=str(path)) from error
    if not _is_roots(found):
        raise NodeFailure(
            f"{path} has to be root's, and writable by nobody else; no guest is started before "
            "it is. “chown root:root” and “chmod 644” make it so.",
            path=str(path),
        )
    return parse_rules(text, source=str(path))


def parse_rules(text: str, *, source: str) -> Rules:
    """Read rules; a kind that is given replaces the default of that kind.

    Raises:
        NodeFailure: names the line.
    """
    rules = Rules(source=source)
    programs: list[str] = []
    images: list[str] = []
    secrets: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word, _, value = line.partition("#")[0].strip().partition(" ")
        value = value.strip()
        match word:
            case "":
                continue
            case "program" if value.startswith("/"):
                programs.append(value)
            case "image" if value.startswith("/"):
                images.append(value)
            case "secret" if value.startswith("/"):
                secrets.append(value)
            case "spice" if value.startswith("/"):
                rules = replace(rules, spice=value)
            case "extra" if value in ("allowed", "refused"):
                rules = replace(rules, extra=value == "allowed")
            case "users" if users := _read_users(value):
                rules = replace(rules, users=users)
            case _:
                raise NodeFailure(
                    f"Line {number} of {source} is none of “program /PATH”, “image /PATH”, "
                    f"“secret /PATH”, “spice /PATH”, “extra allowed” and “users FIRST-LAST” "
                    f"(from {LOWEST} on); no guest is started before it is mended.",
                    path=source,
                )
    return replace(
        rules,
        programs=tuple(programs) or rules.programs,
        images=tuple(images),
        secrets=(*secrets, *filter(None, (rules.spice,))),
    )


def check_program(rules: Rules, path: str) -> str:
    """Return where a program really is, if guests may be run by it.

    Raises:
        NodeFailure: it is not allowed, or others than root could replace it.
    """
    real = os.path.realpath(path)
    if not _is_among(real, rules.programs):
        raise NodeFailure(
            f"{path} may not run guests here; root of this node says in {rules.source} which "
            f"programs may: {', '.join(rules.programs)}.",
            path=path,
        )
    for part in (Path(real), *Path(real).parents):
        found = part.stat()
        if not _is_roots(found) and not _is_shared(found):
            raise NodeFailure(
                f"{path} may not run guests here: others than root can write {part}.", path=path
            )
    return real


def check_extra(rules: Rules, extra: str) -> None:
    """Refuse options of QEMU that root of this node has not allowed: they could be anything.

    Raises:
        NodeFailure: says how they are allowed.
    """
    if extra and not rules.extra:
        raise NodeFailure(
            f"Its kvm_extra, “{extra}”, is not told to QEMU here: root of this node says in "
            f"{rules.source} whether that may be (“extra allowed”).",
            path=rules.source,
        )


def open_image(rules: Rules, path: str, *, never: Sequence[Path]) -> int:
    """Open a kernel, initrd or CD image to be read; the descriptor is the caller's.

    Links are followed before the path is looked at, and not any more after.

    Args:
        rules: what is allowed.
        path: as it was asked for.
        never: directories of noded's own.

    Raises:
        NodeFailure: there is no such file, it is not allowed, or not for everybody to read.
    """
    real = os.path.realpath(path)
    if not _is_among(real, rules.images) or _is_among(real, tuple(map(str, never))):
        allowed = ", ".join(rules.images) or "none yet"
        raise NodeFailure(
            f"{path} may not be given to guests here; root of this node says in {rules.source} "
            f"which images may (“image /DIRECTORY”): {allowed}.",
            path=path,
        )
    try:
        descriptor = _open_without_links(real)
    except OSError as error:
        raise NodeFailure(f"Cannot open {path}: {error.strerror}.", path=path) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode) and mode & stat.S_IROTH:
        return descriptor
    os.close(descriptor)
    raise NodeFailure(
        f"{path} has to be a file that everybody may read, since each guest is run by a user of "
        "its own; “chmod a+r” makes it so.",
        path=path,
    )


def read_password(rules: Rules, path: str, *, never: Sequence[Path]) -> str:
    """Return the password of a display: the first line of a file.

    Raises:
        NodeFailure: see ``read_secret``; or it holds no password.
    """
    text = read_secret(rules, path, never=never, limit=1000).partition(b"\n")[0]
    password = text.rstrip(b"\r").decode("ascii", "replace")
    if not 1 <= len(password) <= _LONGEST_PASSWORD or not password.isascii():
        raise NodeFailure(
            f"The first line of {path} has to be a password of 1 to {_LONGEST_PASSWORD} ASCII "
            "characters; VNC takes no more.",
            path=path,
        )
    return password


def read_secret(
    rules: Rules, path: str, *, never: Sequence[Path], limit: int, is_public: bool = False
) -> bytes:
    """Return what is in a file with a password, key or certificate of a display.

    Whoever may name a file could else try what its first characters are.

    Args:
        rules: what is allowed.
        path: as it was asked for.
        never: directories of noded's own.
        limit: of what is read, in bytes.
        is_public: others than root may read it.

    Raises:
        NodeFailure: there is no such file, it is not allowed, or others can read it or write it.
    """
    real = os.path.realpath(path)
    if not _is_among(real, rules.secrets) or _is_among(real, tuple(map(str, never))):
        allowed = ", ".join(rules.secrets) or "none yet"
        raise NodeFailure(
            f"{path} may not be a password or a key of a display here; root of this node says in "
            f"{rules.source} which files may (“secret /DIRECTORY”): {allowed}.",
            path=path,
        )
    try:
        with open(_open_without_links(real), "rb") as file:
            found = os.fstat(file.fileno())
            content = file.read(limit) if stat.S_ISREG(found.st_mode) else b""
    except OSError as error:
        raise NodeFailure(f"Cannot open {path}: {error.strerror}.", path=path) from error
    if is_public:
        if not _is_roots(found):
            raise NodeFailure(
                f"{path} is a certificate of a display, and has to be root's and writable by "
                "nobody else; “chown root:root” and “chmod 644” make it so.",
                path=path,
            )
    elif found.st_uid not in (0, os.geteuid()) or stat.S_IMODE(found.st_mode) & 0o077:
        raise NodeFailure(
            f"{path} holds a secret, and has to be root's and readable by nobody else; "
            "“chown root:root” and “chmod 600” make it so.",
            path=path,
        )
    return content


def _open_without_links(path: str) -> int:
    """Open a file, following no link on the way; the path is absolute and normal."""
    *directories, name = path.split("/")[1:]
    here = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for directory in directories:
            flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            there = os.open(directory, flags, dir_fd=here)
            os.close(here)
            here = there
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        return os.open(name, flags, dir_fd=here)
    finally:
        os.close(here)


def _is_among(real: str, allowed: tuple[str, ...]) -> bool:
    """Tell whether a path is one of those allowed, or below one."""
    roots = map(os.path.realpath, allowed)
    return any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots)


def _is_roots(found: os.stat_result) -> bool:
    """Tell whether only root can write it; where noded is not root, only we."""
    return found.st_uid in (0, os.geteuid()) and not found.st_mode & _OTHERS_WRITE


def _is_shared(found: os.stat_result) -> bool:
    """Tell whether it is a directory as /tmp: anybody adds to it, and nobody replaces anything."""
    mode = found.st_mode
    return found.st_uid in (0, os.geteuid()) and stat.S_ISDIR(mode) and bool(mode & stat.S_ISVTX)


def _read_users(text: str) -> range | None:
    match = _USERS.fullmatch(text)
    if match is None:
        return None
    first, last = int(match[1]), int(match[2])
    return range(first, last + 1) if LOWEST <= first <= last <= HIGHEST else None
