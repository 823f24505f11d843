"""Requests of an integrator's backend: ordered, seen, changed, taken back."""
