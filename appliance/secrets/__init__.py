"""Secret keys and passwords: their files, sealing, hashing."""
