"""A Redis that wants a password, by its Unix socket."""

import pytest
from arq.connections import RedisSettings
from redis.exceptions import AuthenticationError

from appliance.messaging.redis_link import connect
from tests.support.processes.scratch import short_folder
from tests.support.services.redis import RedisServer

_PASSWORD = "una clave de redis"


async def test_password_is_given_by_a_socket_too() -> None:
    """As by a host; without it nothing is told."""
    with short_folder() as folder:
        server = RedisServer(folder)
        server.start()
        try:
            server.command("CONFIG", "SET", "requirepass", _PASSWORD)
            socket = str(server.socket)

            async with connect(
                RedisSettings(unix_socket_path=socket, password=_PASSWORD)
            ) as client:
                assert await client.ping()
            async with connect(RedisSettings(unix_socket_path=socket)) as stranger:
                with pytest.raises(AuthenticationError):
                    await stranger.ping()
        finally:
            server.kill()
