"""What takes long to make and every lab may use: the kernel, Debian, the image, wheels."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deploy.uml.place import CACHE

UNFINISHED = "making-"  # what is finished is moved out of it, so that nothing is there by half


@contextmanager
def making(say: Callable[[str], None]) -> Iterator[Path]:
    """Wait until nobody else makes anything; give a directory to make something in."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with my_turn(CACHE / "lock", lambda: say("waiting for another lab, which makes an image")):
        for left in CACHE.glob(f"{UNFINISHED}*"):  # by somebody who was killed
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(
            prefix=UNFINISHED, dir=CACHE, ignore_cleanup_errors=True
        ) as directory:
            yield Path(directory)


@contextmanager
def my_turn(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file; it is free again when its holder ends, however that happens."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
