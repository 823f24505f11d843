"""The visible signature: what it shows, and previews of it."""
