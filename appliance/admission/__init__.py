"""Who may do how much: fair turns, rates, quotas, and tries at a sign-in."""
