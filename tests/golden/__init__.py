"""What versions of Gantry have written, kept for later ones to read."""
