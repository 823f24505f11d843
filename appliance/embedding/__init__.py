"""The embedded signing session, from its opening to the signature."""
