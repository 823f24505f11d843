"""What an integrator's backend does by REST, with an API key."""
