"""Integrators, their API keys and origins."""
