"""How the coordinator reaches its nodes."""
