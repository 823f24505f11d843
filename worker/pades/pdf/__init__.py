"""PDF objects read and written fast, and revisions of a file."""
