"""A script of the operator's that has failed, as an operation is told of it."""

from typing import NamedTuple

from common.model.node import NodeRef


class FailedHook(NamedTuple):
    """A script that has failed, or all of a directory that could not be run."""

    node: NodeRef
    directory: str
    script: str  # "": none of the directory could be run
    said: str

    def __str__(self) -> str:
        if not self.script:
            return f"Hooks in {self.directory} on {self.node}: {self.said}"
        said = f": {self.said}" if self.said else ""
        return f"{self.directory}/{self.script} on {self.node} failed{said}"
