"""The visible signature, drawn: form XObject and fonts."""
