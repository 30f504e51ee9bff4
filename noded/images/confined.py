"""Doing by a process without rights what reads what strangers have made."""

import os
import signal
import sys
import traceback
from collections.abc import Callable

from noded.images.qcow2 import BadImage

ROOT, NOBODY = 0, 65534


def confined(work: Callable[[], None]) -> None:
    """Do something as nobody; it has what is open, and can open nothing that is not everybody's.

    Raises:
        BadImage: as ``work`` did.
    """
    reading, writing = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work_and_exit(work, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as words:
        problem = words.read().decode()
    _, status = os.waitpid(child, 0)
    if problem or status:
        raise BadImage(problem or "the process that read it was killed")


def _work_and_exit(work: Callable[[], None], words: int) -> None:
    status = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if os.geteuid() == ROOT:
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        work()
        status = 0
    except BadImage as error:
        os.write(words, str(error).encode())
    except Exception:  # noqa: BLE001 -- the parent says what it was
        os.write(words, traceback.format_exc().encode()[-2000:])
    finally:
        sys.stdout.flush()
        os._exit(status)
