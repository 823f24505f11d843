"""Who people and administrators are, and what proves it."""
