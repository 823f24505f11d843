"""Where untrusted PDFs are opened: confined, without secrets or network."""
