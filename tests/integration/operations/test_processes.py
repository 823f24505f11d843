"""Listeners: taken over from the dead, never from the living, shared with the group."""

import asyncio
import os
import socket
import stat
import struct
from pathlib import Path

import pytest

from appliance.runtime.processes import background, bind
from appliance.settings import SettingsError
from tests.support.processes.scratch import free_port


def dead_socket(path: Path) -> None:
    """What a process that was killed leaves behind."""
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))


def reaches(path: Path) -> bool:
    """Whether somebody listens there."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


@pytest.mark.parametrize(
    ("mask", "mode"), [(0o077, 0o600), (0o007, 0o660), (0o022, 0o640), (0, 0o660)]
)
def test_socket_mode_follows_the_umask_and_leaves_others_out(
    short_dir: Path, mask: int, mode: int
) -> None:
    """A trial (umask 077) stays private; roles of one group (007) share."""
    before = os.umask(mask)
    try:
        with bind(f"unix:{short_dir / 's'}", 5):
            found = stat.S_IMODE((short_dir / "s").stat().st_mode)
    finally:
        os.umask(before)

    assert found == mode


def test_socket_of_a_dead_process_is_taken_over(short_dir: Path) -> None:
    """What a killed process left is no obstacle."""
    dead_socket(short_dir / "s")

    with bind(f"unix:{short_dir / 's'}", 5):
        assert reaches(short_dir / "s")


def test_socket_of_a_living_process_is_left_alone(short_dir: Path) -> None:
    """Who listens keeps the path and is not cut off."""
    address = f"unix:{short_dir / 's'}"
    with bind(address, 5):
        with pytest.raises(SettingsError, match="another process listens there"):
            bind(address, 5)

        assert reaches(short_dir / "s")


def test_socket_of_a_busy_process_is_left_alone(short_dir: Path) -> None:
    """A full queue is no sign of death, and nobody waits for it."""
    path = short_dir / "s"
    waiting = []
    with bind(f"unix:{path}", 0):
        try:
            for _ in range(3):
                client = socket.socket(socket.AF_UNIX)
                waiting.append(client)
                client.setblocking(False)  # noqa: FBT003 (its only form)
                if client.connect_ex(str(path)):
                    break
            with pytest.raises(SettingsError, match="another process listens there"):
                bind(f"unix:{path}", 5)
        finally:
            for client in waiting:
                client.close()


def test_file_that_is_no_socket_is_left_alone(short_dir: Path) -> None:
    """A wrong path in the settings must not cost a file."""
    path = short_dir / "precious"
    path.write_text("data", encoding="utf-8")

    with pytest.raises(SettingsError, match="no socket"):
        bind(f"unix:{path}", 5)

    assert path.read_text(encoding="utf-8") == "data"


def test_port_in_use_is_named(short_dir: Path) -> None:
    """The text says which address and why."""
    del short_dir
    port = free_port()
    with (
        bind(f"127.0.0.1:{port}", 5),
        pytest.raises(SettingsError, match=f"127.0.0.1:{port}: cannot be listened on"),
    ):
        bind(f"127.0.0.1:{port}", 5)


def test_port_is_bound_again_at_once_after_a_stop() -> None:
    """Connections that linger do not keep a restart from its port."""
    port = free_port()
    with bind(f"127.0.0.1:{port}", 5) as listener:
        client = socket.create_connection(("127.0.0.1", port))
        server, _ = listener.accept()
        server.close()
        client.close()

    with bind(f"127.0.0.1:{port}", 5) as again:
        assert again.getsockname() == ("127.0.0.1", port)


def test_port_of_ipv6_is_written_in_brackets() -> None:
    """`[::1]:0` listens on IPv6."""
    with bind("[::1]:0", 5) as listener:
        assert listener.family is socket.AF_INET6


@pytest.mark.parametrize(
    "address",
    [
        "",
        "nonsense",
        "127.0.0.1:",
        "127.0.0.1:http",
        "127.0.0.1:70000",
        "127.0.0.1:-1",
        "256.0.0.1:8080",
        "unix:",
        "unix:/none/such/socket",
        "unix:/tmp/" + "x" * 120,
    ],
)
def test_address_that_cannot_be_had_is_named(address: str) -> None:
    """Whatever stands in the settings: a clear refusal, no crash, nothing leaks."""
    with pytest.raises(SettingsError) as caught:
        bind(address, 5)

    assert address in str(caught.value)


async def test_background_ends_with_its_block() -> None:
    """What runs beside a block is cancelled with it."""
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with background(work()):
        await asyncio.sleep(0)

    assert ended.is_set()


async def test_background_failure_ends_the_block() -> None:
    """A block does not run on without what runs beside it."""

    async def fail() -> None:
        raise LookupError

    async def block() -> None:
        async with background(fail()):
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        await block()

    assert caught.group_contains(LookupError)


def test_so_many_connections_wait_to_be_accepted() -> None:
    """By what the kernel says of the listener (`tcpi_sacked` of one: its backlog)."""
    with bind(f"127.0.0.1:{free_port()}", 512) as listener:
        told = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)

    assert struct.unpack_from("I", told, 28) == (512,)


@pytest.mark.parametrize("address", ["127.0.0.1", "[::1]"])
async def test_what_is_sent_in_two_parts_waits_for_no_confirmation(
    address: str,
) -> None:
    """Connections of a listener send at once, however little there is to send."""
    sends_at_once: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        option = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        sends_at_once.set_result(option)
        writer.close()

    port = free_port()
    server = await asyncio.start_server(serve, sock=bind(f"{address}:{port}", 8))
    async with server:
        _, writer = await asyncio.open_connection(address.strip("[]"), port)
        assert await asyncio.wait_for(sends_at_once, 60)
        writer.close()
