"""`rubrica hsm check`: what an HSM can do, tried."""
