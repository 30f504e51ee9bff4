"""The copy of the cluster's state on a master candidate."""
