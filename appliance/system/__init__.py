"""What the operating system says of this machine."""
