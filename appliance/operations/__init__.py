"""What operators do to a whole installation: set it up, look after it."""
