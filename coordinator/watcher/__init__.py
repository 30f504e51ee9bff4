"""Has what should run and does not run started again; looks, submits jobs, remembers nothing."""
