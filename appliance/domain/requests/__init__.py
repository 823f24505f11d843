"""Signature requests, batches and the signing command."""
