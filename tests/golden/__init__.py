"""What versions of Gantry have written, kept for later ones to read, and what is on the wire."""

from pathlib import Path

WIRE = Path(__file__).parent / "wire"
