"""The internal timestamping authority (RFC 3161)."""
