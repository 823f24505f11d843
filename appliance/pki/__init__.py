"""The internal CA: issuance, renewal, revocation, publication."""
