"""Batches: many documents that one person is asked to sign, by one call."""
