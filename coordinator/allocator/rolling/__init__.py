"""Which nodes can be down at the same time."""
