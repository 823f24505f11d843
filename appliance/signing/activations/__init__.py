"""Signature activations: in SQL, in a queue, and claimed."""
