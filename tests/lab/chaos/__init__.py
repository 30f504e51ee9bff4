"""Chaos on real devices: a lab whose nodes, links and disks break while operators give orders."""
