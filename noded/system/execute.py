"""Programs on a node are run as everywhere."""

from common.execute import ENVIRONMENT, TOLD_LIMIT, CommandFailed, Finished, execute

__all__ = ["ENVIRONMENT", "TOLD_LIMIT", "CommandFailed", "Finished", "execute"]
