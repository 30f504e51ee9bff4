"""Other nodes for instances that are somewhere already."""
