"""Path validation (RFC 5280), trust anchors, validation material."""
