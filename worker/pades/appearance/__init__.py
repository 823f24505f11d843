"""The visible signature, drawn: form XObject, fonts, graphics."""
