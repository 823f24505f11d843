"""Mails to people."""
