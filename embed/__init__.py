"""The signing iframe: its pages, its API for them, and the demo integrator."""
