"""Pages of one integrator: its domains, keys, profile, stamp and webhooks."""
