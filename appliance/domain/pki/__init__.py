"""Certificates, trust, and what is asked of authorities outside."""
