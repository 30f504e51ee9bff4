"""The cluster's state: the snapshot in memory, and its copies on the master candidates."""
