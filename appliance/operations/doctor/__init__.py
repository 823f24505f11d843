"""`rubrica doctor`: what is amiss with an installation, and what to do about it."""
