"""Commands around integrators' webhooks."""
