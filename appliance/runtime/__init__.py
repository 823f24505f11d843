"""Processes: their start, log, signs of life, and end."""
