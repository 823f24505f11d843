"""Mails to people: what is told, its words, and the server that takes them."""
