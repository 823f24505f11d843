"""The core's words and rules; imports no framework and does no I/O."""
