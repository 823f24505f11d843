"""PDFs: what the sandbox saw of one, and the verdict on its signatures."""
