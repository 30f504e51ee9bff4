"""What is decided about operating systems: which can be used where, and with which parameters."""
