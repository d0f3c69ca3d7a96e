"""Results as text for people: tables and summaries, readable without colour."""
