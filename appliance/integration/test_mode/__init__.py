"""Test mode: signers that a backend makes up, and the mails to them."""
