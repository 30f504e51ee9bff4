"""What the process that runs a script is told when it starts."""

from common.messages import Order


class Task(Order, kw_only=True):
    """Read from a descriptor: what others can read, such as a command line, tells no secrets.

    Attributes:
        argv: the script.
        directory: where it is started.
        environment: all of it.
        secrets: texts that do not appear in its output.
        sandbox: where the root directory of a script is made that is not trusted; empty: it is.
        turn: the directory by which scripts that are not trusted wait for one another.
        paths: of the disks that the script reaches.
        disks: descriptors of those; what was claimed is, for as long as they are open.
        log: the descriptor of the file for its output.
        reads: the pipe that it reads from its standard input; empty: nothing.
        writes: the pipe for its standard output; empty: that is said, too.
        estimate: the file for how much it expects to write; empty: it is not asked.
        ending: the file by which whoever copies its stream hears how it ended; empty: it has none.
        result: the file that says how it ended.
    """

    argv: tuple[str, ...]
    directory: str
    environment: dict[str, str]
    secrets: tuple[str, ...] = ()
    sandbox: str = ""
    turn: str = ""
    paths: tuple[str, ...] = ()
    disks: tuple[int, ...] = ()
    log: int
    reads: str = ""
    writes: str = ""
    estimate: str = ""
    ending: str = ""
    result: str
