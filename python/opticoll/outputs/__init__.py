"""Output of commands: rows, their text, and the verifier's results."""
