"""The signing engine: prepare, assemble and check one signature."""
