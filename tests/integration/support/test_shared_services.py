"""The parts of tests themselves: private, fresh, and to be had back."""

import subprocess
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.support.appliance.appliance import Appliance
from tests.support.hsm.softhsm import SoftHsm
from tests.support.services.postgres import PostgresServer, database_name
from tests.support.services.redis import RedisServer


def test_postgres_database_is_fresh(
    postgres_server: PostgresServer, postgres_url: str
) -> None:
    """A test's database holds no table, and can be written to."""
    name = database_name(postgres_url)

    count = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
    assert postgres_server.execute(count, name) == "0"

    postgres_server.execute("CREATE TABLE t ()", name)
    assert postgres_server.execute(count, name) == "1"


def test_postgres_folder_is_private(postgres_server: PostgresServer) -> None:
    """The socket, which wants no password, is in nobody else's reach."""
    assert postgres_server.folder.stat().st_mode & 0o077 == 0


def test_postgres_leaves_nothing_in_memory(postgres_server: PostgresServer) -> None:
    """What a killed server leaves is in the folder that goes with it."""
    shown = postgres_server.execute("SHOW dynamic_shared_memory_type")

    assert shown == "mmap"


def test_appliance_leaves_no_activation_keys(tmp_path: Path) -> None:
    """Its folder of keys, which no temporary folder holds, goes at its end."""
    appliance = Appliance(tmp_path)
    appliance.set_up()
    keys = appliance.settings.activation_dir
    assert not keys.is_relative_to(tmp_path)
    keys.mkdir(mode=0o700)
    (keys / "1.key").write_bytes(bytes(32))

    appliance.close()

    assert not keys.exists()


def test_redis_comes_back_empty_after_stop(redis_server: RedisServer) -> None:
    """A stopped server refuses, and a new one knows nothing."""
    with Redis(unix_socket_path=str(redis_server.socket)) as client:
        client.set("key", "value")
        redis_server.stop()
        with pytest.raises(RedisConnectionError):
            client.get("key")

        redis_server.start()
        assert client.get("key") is None


def test_redis_flush_deletes_all(redis_server: RedisServer) -> None:
    """A flush leaves nothing."""
    with Redis(unix_socket_path=str(redis_server.socket)) as client:
        client.set("key", "value")
        redis_server.flush()

        assert client.dbsize() == 0


def test_softhsm_sees_its_own_tokens_only(softhsm: SoftHsm) -> None:
    """A new token is the only one, whatever the machine has."""
    softhsm.init_token("firma", "123456")

    shown = subprocess.run(
        ["softhsm2-util", "--show-slots"],
        env=softhsm.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    labels = [
        line.split(":")[1].strip() for line in shown.splitlines() if "Label" in line
    ]
    assert [label for label in labels if label] == ["firma"]
    assert softhsm.module.exists()


def test_short_dir_leaves_room_for_a_socket(short_dir: Path) -> None:
    """A socket's whole path must stay under 108 bytes."""
    assert len(bytes(short_dir)) < 40
    assert short_dir.stat().st_mode & 0o077 == 0
