"""Documents: what is seen of them, and what room they may take."""
