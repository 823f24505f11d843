"""The database, below what the record holds."""
