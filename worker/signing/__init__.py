"""Signing activations: documents, completion, levels."""
