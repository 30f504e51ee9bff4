"""The lab: real nodes on one machine, as user-mode Linux, each with a kernel of its own."""
