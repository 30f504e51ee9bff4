"""Ganeti's cluster tools: commands around the allocator, with the same options and output."""
