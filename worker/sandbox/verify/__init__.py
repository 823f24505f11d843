"""Verification of a document's signatures; in confined jobs only."""
