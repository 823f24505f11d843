"""HTTP/1.1 on Hypercorn: connections, limits, early responses."""
