"""`rubrica serve metrics`: the figures of all roles of a host, for Prometheus.

It reads the files in which the roles hand theirs over
(`appliance.metrics.metrics_file`), opens no database and holds no secret.
"""
