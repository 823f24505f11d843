"""The visible signature: text, layout, geometry; pure functions."""
