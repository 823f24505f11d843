"""The console (comes with the session and iframe step)."""
