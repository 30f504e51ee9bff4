"""Programs on a node are run as everywhere."""

from common.execute import ENVIRONMENT, CommandFailed, Finished, execute

__all__ = ["ENVIRONMENT", "CommandFailed", "Finished", "execute"]
