"""Documents in a bucket of an S3-compatible store."""
