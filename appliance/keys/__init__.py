"""Signing keys: passwords, sealing to hosts, HSM tasks, master keys."""
