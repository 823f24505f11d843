"""Signing: from a person's requests to published documents."""
