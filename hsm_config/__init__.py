"""HSM profiles, provisioning and self-check."""
