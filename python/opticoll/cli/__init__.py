"""The command line: what commands take, how they are run, and what is printed."""
