"""The signing iframe (comes with the session and iframe step)."""
