"""Trial signatures, by which a document is tried before anybody signs it."""
