"""The books of all nodes: what each has, and what instances take of it and give back."""
