"""Equal instances placed one after the other until none fits."""
