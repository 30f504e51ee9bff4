"""Stories on real nodes, each a user-mode Linux with its own kernel, disks and systemd."""
