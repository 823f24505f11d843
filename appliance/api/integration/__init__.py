"""What an integrator's backend asks for by REST, with an API key."""
