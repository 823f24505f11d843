"""Values that the stores write and read."""
