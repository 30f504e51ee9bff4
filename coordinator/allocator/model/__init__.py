"""The model of a cluster: what each node has, and what instances take of it and give back."""
