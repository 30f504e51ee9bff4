"""Moves that make a group better, all moves of a step scored at once."""
