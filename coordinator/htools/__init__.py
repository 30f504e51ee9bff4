"""Ganeti's cluster tools: commands around the allocator, with the same options and output."""

import os

# Before anybody loads NumPy: our products are thin, and starting more threads takes 50 ms.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
