"""People and administrators as they are recorded, for every feature that asks."""
