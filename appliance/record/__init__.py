"""Transactions of the database, the audit, and rows that every feature keeps."""
