"""Timestamps: of the internal authority, and of those outside."""
