"""Small files that are whole or absent, whatever happens, and on disk when told so."""

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from common.errors import NodeFailure


def write_durably(
    path: Path, data: bytes, *, mode: int = 0o600, owner: tuple[int, int] | None = None
) -> None:
    """Replace the contents of ``path``: a reader sees the old or the new ones, never a mixture.

    Blocks until it is on disk; call it in a thread.

    Args:
        path: of the file.
        data: what it is to hold.
        mode: who may do what with it.
        owner: numbers of the user and the group that it belongs to; None: ours.

    Raises:
        NodeFailure: the disk is full, read-only or broken; ``path`` is as it was.
    """
    unfinished = path.with_name(f".{path.name}.new")
    with explaining(f"write {path}"):
        try:
            # O_TRUNC: a crash may have left one. Nobody else writes it, see daemon.single.
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
            try:
                if owner is not None:
                    os.fchown(descriptor, *owner)
                os.fchmod(descriptor, mode)
                rest = memoryview(data)
                while rest:  # a disk may take a part, and be full then
                    rest = rest[os.write(descriptor, rest) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            unfinished.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        sync_directory(path.parent)


def remove_durably(path: Path) -> None:
    """Delete a file; one that is not there is fine.

    Raises:
        NodeFailure: the disk is read-only or broken.
    """
    with explaining(f"delete {path}"):
        path.unlink(missing_ok=True)
        with contextlib.suppress(FileNotFoundError):
            sync_directory(path.parent)


def read_if_there(path: Path | str) -> bytes | None:
    """Return what is in a small file; None where there is none.

    By system calls alone: ``open`` and pathlib take two thirds of the time, and a master that
    starts has each node read dozens of such files.

    Raises:
        NodeFailure: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            return os.read(descriptor, os.fstat(descriptor).st_size)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failure(f"read {path}", error) from error


def read_durably(path: Path) -> bytes | None:
    """Return what is in a small file, and on disk by then; None where there is none.

    Of what is not to be forgotten once it was told: a noded that was killed may have written it,
    and not synced it yet.

    Raises:
        NodeFailure: it cannot be read, or kept.
    """
    data = read_if_there(path)
    if data is not None:
        with explaining(f"keep {path}"):
            _sync(path)
            sync_directory(path.parent)
    return data


def sync_directory(path: Path) -> None:
    """Have the names in a directory on disk: new, renamed and deleted ones."""
    _sync(path, os.O_DIRECTORY)


def _sync(path: Path, flags: int = 0) -> None:
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def explaining(what: str) -> Iterator[None]:
    """Turn the system's refusal into a sentence: "Cannot ``what``: …".

    Raises:
        NodeFailure: instead of OSError; its detail ``errno`` tells which.
    """
    try:
        yield
    except OSError as error:
        raise _failure(what, error) from error


def _failure(what: str, error: OSError) -> NodeFailure:
    reason = _REASONS.get(error.errno or 0, f"{error.strerror or error}")
    return NodeFailure(f"Cannot {what}: {reason}.", errno=error.errno)


_REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only, perhaps after an error of the disk",
    errno.EIO: "the disk reports an input/output error",
    errno.EACCES: "the permission is missing",
}
