"""What is found in a document; runs in confined jobs only."""
