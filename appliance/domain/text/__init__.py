"""Texts from outside, read strictly: JSON, addresses, names, times."""
