"""The HSM as workers use it: sessions, the one thread, keys, and what heals."""
