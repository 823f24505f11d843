"""`rubrica backup` and `rubrica restore`: an installation in two encrypted files."""
