"""`rubrica upgrade`: the end of an upgrade, and what still stands in its way."""
