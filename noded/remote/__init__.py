"""What root of this node lets the master do here."""
