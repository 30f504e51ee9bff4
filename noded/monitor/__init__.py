"""The monitoring agent of a node: ``gantry-monitor``."""
