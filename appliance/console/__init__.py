"""What the administration console reads."""
