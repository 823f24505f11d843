"""Signature requests: how they come in, and how they are recorded."""
