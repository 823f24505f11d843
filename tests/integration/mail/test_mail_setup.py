"""Setup's questions about the mail server, and the units' way to it.

The server is a real one. Source: docs/mail.md "Setting it up".
"""

import gc
import socket
import ssl
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from appliance.operations import system
from appliance.operations.compose import LAYOUT
from appliance.operations.setup import mail_server as mail_server_answers
from appliance.operations.setup import servers
from appliance.operations.setup.questions import ask_all, look
from appliance.operations.setup_answers import Answers, settings_text
from appliance.settings import MailSettings, SettingsError, load_settings
from tests.support.processes.scratch import free_port
from tests.support.services.mail_server import (
    PASSWORD,
    USER,
    mail_server,
    server_tls,
)
from tests.support.services.server_certificates import Authority, make_authority

_SENDER = "firma@example.org"


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes longer to answer than setup waits."""
    monkeypatch.setattr(mail_server_answers, "CONNECT_S", 60)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Who certifies the server."""
    return make_authority(tmp_path)


def _answers(port: int, folder: Path, **more: str) -> Answers:
    (folder / "clave").write_text(f"{PASSWORD}\n")
    return Answers.of(
        {
            "mail_host": "localhost",
            "mail_tls": "none",
            "mail_port": str(port),
            "mail_from": _SENDER,
            "mail_user": USER,
            "mail_password_file": str(folder / "clave"),
            **more,
        }
    )


def test_answers_about_mail_reach_the_settings(tmp_path: Path) -> None:
    """Under their keys, files where setup puts them; without a host there is none."""
    answers = _answers(2525, tmp_path, mail_tls="starttls", mail_ca="/root/ca.pem")

    made = tomllib.loads(settings_text(answers))["mail"]

    assert made == {
        "host": "localhost",
        "tls": "starttls",
        "port": 2525,
        "from_address": _SENDER,
        "user": USER,
        "password_file": "/etc/rubrica/secrets/mail-password",
        "root_certificate_file": "/etc/rubrica/mail-ca.pem",
    }
    MailSettings.model_validate(made)
    in_containers = tomllib.loads(settings_text(answers, LAYOUT))["mail"]
    assert in_containers["password_file"] == "/run/secrets/mail-password"
    assert "mail" not in tomllib.loads(settings_text(Answers.of({})))


def test_server_is_reached_and_signed_in_to(
    tmp_path: Path, authority: Authority
) -> None:
    """By TLS that its authority vouches for; nothing is sent."""
    tls = server_tls(*authority.certify(tmp_path, "localhost"))
    with mail_server(tls, auth=True) as server:
        good = _answers(
            server.port,
            tmp_path,
            mail_tls="starttls",
            mail_ca=str(authority.certificate),
        )
        for key in ("mail_host", "mail_ca", "mail_from", "mail_password_file"):
            assert look(good, key) == []
        assert server.caught == []


def test_what_the_server_does_not_take_is_told(
    tmp_path: Path, authority: Authority
) -> None:
    """A stranger's certificate, and a password that is another."""
    tls = server_tls(*authority.certify(tmp_path, "localhost"))
    with mail_server(tls, auth=True) as server:
        certified = _answers(server.port, tmp_path, mail_tls="starttls")
        (strange,) = look(certified, "mail_ca")
        (tmp_path / "otra").write_text("otra clave\n")
        (refused,) = look(
            _answers(
                server.port,
                tmp_path,
                mail_tls="starttls",
                mail_ca=str(authority.certificate),
                mail_password_file=str(tmp_path / "otra"),
            ),
            "mail_password_file",
        )

    assert "certificate" in strange
    assert refused.startswith("535")
    assert "otra clave" not in refused


@contextmanager
def _never_ending_server(tls: ssl.SSLContext) -> Iterator[int]:
    """A server, TLS from the first byte, that answers QUIT and keeps the connection.

    Args:
        tls: of it.

    Yields:
        Its port.
    """
    is_over = threading.Event()

    def serve() -> None:
        plain, _ = listener.accept()
        with tls.wrap_socket(plain, server_side=True) as connection:
            connection.sendall(b"220 ready\r\n")
            for line in connection.makefile("rb"):
                if line.startswith(b"QUIT"):
                    connection.sendall(b"221 bye\r\n")
                    break
                connection.sendall(b"250 fine\r\n")
            is_over.wait()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        is_over.set()
        thread.join()


def test_connection_is_closed_that_the_server_does_not_end(
    tmp_path: Path, authority: Authority
) -> None:
    """No socket is left to the garbage collector, whose warning fails the test."""
    tls = server_tls(*authority.certify(tmp_path, "localhost"))
    with _never_ending_server(tls) as port:
        answers = _answers(
            port, tmp_path, mail_tls="implicit", mail_ca=str(authority.certificate)
        )
        assert look(answers, "mail_ca") == []
        gc.collect()


def test_server_that_is_away_is_told(tmp_path: Path) -> None:
    """As soon as it is known where it would be."""
    (told,) = look(_answers(free_port(), tmp_path), "mail_ca")

    assert "Connect" in told


@pytest.mark.parametrize(
    ("changed", "key", "told"),
    [
        ({"mail_host": "nadie.invalid"}, "mail_host", "has no address"),
        ({"mail_host": "a:25/b"}, "mail_host", "without a port"),
        ({"mail_tls": "ssl"}, "mail_tls", "starttls"),
        ({"mail_port": "smtp"}, "mail_port", "whole number"),
        ({"mail_port": "70000"}, "mail_port", "65535"),
        ({"mail_from": ""}, "mail_from", "is missing"),
        ({"mail_from": "firma"}, "mail_from", "name@example.org"),
        ({"mail_ca": "/nowhere", "mail_tls": "starttls"}, "mail_ca", "cannot be read"),
        ({"mail_ca": "/etc/ca.pem"}, "mail_ca", "starttls or implicit"),
        ({"mail_password_file": ""}, "mail_password_file", "mail_user needs it"),
        ({"mail_password_file": "/nowhere"}, "mail_password_file", "cannot be read"),
        ({"mail_user": ""}, "mail_password_file", "is for mail_user"),
        ({"mail_host": ""}, "mail_user", "is for mail_host"),
        ({"mail_host": ""}, "mail_from", "is for mail_host"),
        ({"mail_host": "", "mail_ca": "/etc/ca.pem"}, "mail_ca", "is for mail_host"),
        (
            {"environment": "PROD", "mail_host": "example.org"},
            "mail_tls",
            "PROD needs starttls",
        ),
    ],
)
def test_answer_that_will_not_do_is_told(
    changed: dict[str, str], key: str, told: str, tmp_path: Path
) -> None:
    """By its own key; nobody is asked a question about a server that is not named."""
    faults = look(_answers(free_port(), tmp_path, **changed), key)

    assert any(told in fault for fault in faults), faults


def test_answers_without_a_server_are_refused_whole() -> None:
    """From a file, of which nothing is left out unseen."""
    with pytest.raises(SettingsError) as refused:
        ask_all({"mail_user": USER}, interactive=False)

    assert "mail_user: is for mail_host" in str(refused.value)


def test_the_chores_alone_have_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The password as a credential, and the server's addresses; once is enough."""
    monkeypatch.setattr(system, "UNITS", tmp_path / "units")
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(_answers(25, tmp_path, mail_host="192.0.2.25")))
    settings = load_settings(path)
    handed = "LoadCredential=mail-password:/etc/rubrica/secrets/mail-password"

    assert servers.unit_lines(settings, "chores") == [
        handed,
        "IPAddressAllow=192.0.2.25",
    ]
    assert servers.unit_lines(settings, "api") == []

    own = tmp_path / "units" / "rubrica-chores.service.d" / "override.conf"
    own.parent.mkdir(parents=True)
    own.write_text(f"[Service]\n{handed}\n")
    assert servers.unit_lines(settings, "chores") == ["IPAddressAllow=192.0.2.25"]


def test_a_way_by_ipv6_is_told_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An address with colons is one."""
    monkeypatch.setattr(system, "UNITS", tmp_path / "units")
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(_answers(25, tmp_path, mail_host="2001:db8::25")))

    lines = servers.unit_lines(load_settings(path), "chores")

    assert "IPAddressAllow=2001:db8::25" in lines
