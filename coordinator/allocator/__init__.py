"""Where instances go: decisions over a frozen snapshot of the cluster.

Nothing is imported here, so that a command can look at the package without loading numpy.
"""
