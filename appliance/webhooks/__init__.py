"""Integrators' webhooks: endpoints, what is sent to them, and its delivery."""
