"""News between processes over Redis: nothing here is a record."""
