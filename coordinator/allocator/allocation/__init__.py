"""Nodes for new instances, and whether nodes can be emptied."""
