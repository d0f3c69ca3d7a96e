"""Command line: parameters of commands, their execution and their output."""
