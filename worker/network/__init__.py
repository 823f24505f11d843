"""What only the role with a network does: asks TSAs and CAs outside, and finishes."""
