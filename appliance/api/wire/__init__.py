"""What the API reads and answers, field by field."""
