"""Mails to people, sent by the role that has a network."""
