"""What use cases of every feature stand on."""
