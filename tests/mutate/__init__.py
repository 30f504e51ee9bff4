"""Faults planted on purpose: each breaks a promise, and some test has to notice it."""
