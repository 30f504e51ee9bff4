"""Command lines of qemu-img: values in, arguments out. Source: qemu-img(1) of QEMU 7.2.

An image is told by a path to an open descriptor, and always with its format: nothing is probed.
"""

from common.names import DiskId, MiB

Command = tuple[str, ...]


def create(path: str, size: MiB) -> Command:
    """Make an image all of whose clusters have their place in the file, which is made of holes.

    So it takes no space before it is written to, and can be filled without QEMU.
    """
    return ("qemu-img", "create", "-q", "-f", "qcow2", "-o", "preallocation=metadata", path,
            f"{size}M")  # fmt: skip


def grow(path: str, size: MiB) -> Command:
    return ("qemu-img", "resize", "-q", "--preallocation=metadata", *_image(path), f"{size}M")


def check(path: str) -> Command:
    """Look without a lock: a guest may start meanwhile."""
    return ("qemu-img", "check", "-q", "-U", *_image(path))


def keep(path: str, name: DiskId) -> Command:
    return ("qemu-img", "snapshot", "-q", "-c", name, *_image(path))


def go_back(path: str, name: DiskId) -> Command:
    return ("qemu-img", "snapshot", "-q", "-a", name, *_image(path))


def forget(path: str, name: DiskId) -> Command:
    return ("qemu-img", "snapshot", "-q", "-d", name, *_image(path))


def _image(path: str) -> Command:
    return ("--image-opts", f"driver=qcow2,file.driver=file,file.filename={path}")
