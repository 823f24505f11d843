"""Signing and chores workers, and the PDF sandbox."""
