"""What each process counts and measures of itself."""
