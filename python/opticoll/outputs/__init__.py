"""What commands say: rows, their text, and what the verifier says of a plan."""
