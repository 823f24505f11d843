"""Integrators: their API keys, origins and logos."""
