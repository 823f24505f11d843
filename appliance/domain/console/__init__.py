"""What the console shows, and what is edited there."""
