"""The command line. Files that a list command needs import nothing heavy."""
