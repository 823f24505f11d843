"""Documents in a folder of this machine."""
