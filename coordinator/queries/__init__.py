"""Questions about the cluster, with Ganeti's fields and filters."""
