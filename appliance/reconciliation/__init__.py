"""The record compared with the audit: what happened without what must precede it."""
