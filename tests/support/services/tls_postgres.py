"""A PostgreSQL that has a certificate of a test's own authority.

with postgres_certified_by(make_authority(folder)) as server:
    …  # at localhost:{server.port}, by TLS and its password
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.processes.scratch import short_folder
from tests.support.services.postgres import PostgresServer
from tests.support.services.server_certificates import Authority


@contextmanager
def postgres_certified_by(authority: Authority) -> Iterator[PostgresServer]:
    """One of its own, which is `localhost`.

    Args:
        authority: that made its certificate.
    """
    with short_folder() as folder:
        # The server's user passes through it.
        folder.chmod(0o755)
        place = folder / "pg"
        place.mkdir()
        server = PostgresServer.start(place)
        try:
            server.use_tls(*authority.certify(place, "localhost"))
            yield server
        finally:
            server.stop()
