"""Output of commands: rows, their text, and the proof of a plan."""
