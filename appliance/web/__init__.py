"""What every HTTP face shares: bodies, problems, headers, log."""
