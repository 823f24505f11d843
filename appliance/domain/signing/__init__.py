"""What a signer consents to, and what the HSM is asked for."""
