"""Client of Rúbrica's API for an integrator's backend."""
