"""Completion for shells, made from the command table, the parsers and the operations' fields."""
