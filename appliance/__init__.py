"""The shared core of Rúbrica and its public API."""
