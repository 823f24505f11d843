"""The HSM as workers use it: sessions, the threads, keys, and what heals."""
