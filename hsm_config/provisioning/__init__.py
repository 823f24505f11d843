"""Setting an HSM up: tokens, keys, CA, replicas, migration."""
