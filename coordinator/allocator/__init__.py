"""Where instances go: decisions over a frozen picture of the cluster.

Nothing is imported here, so that a command can look at the package without loading numpy.
"""
