"""Keys: in an HSM, of hosts, and secrets in versions."""
