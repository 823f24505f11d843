"""What setup says of the web server's certificate, its key, and the public names.

Source: docs/installing.md; RFC 9525 §6.3.
"""

import shutil
import subprocess
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Self

import pytest

from appliance.operations.setup import public_names
from appliance.operations.setup.questions import look
from appliance.operations.setup_answers import Answers
from appliance.settings import SettingsError
from tests.support.services.server_certificates import make_authority

HOSTS = ("firma.example", "marco.firma.example", "consola.firma.example")


def certify(folder: Path, *names: str) -> None:
    """A certificate and its key, as an operator's authority made them."""
    sans = ",".join(names)
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-nodes"),
            *("-pkeyopt", "ec_paramgen_curve:P-256", "-subj", "/CN=x"),
            *("-addext", f"subjectAltName={sans}", "-days", "2"),
            *("-keyout", folder / "server.key", "-out", folder / "server.pem"),
        ],
        check=True,
        capture_output=True,
    )


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    """Of an installation whose certificate lies there."""
    base, frame, console = (f"https://{host}" for host in HOSTS)
    return Answers.of(
        {
            "base_url": base,
            "iframe_url": frame,
            "admin_url": console,
            "proxy": "nginx",
            "certificate": str(tmp_path / "server.pem"),
            "certificate_key": str(tmp_path / "server.key"),
        }
    )


@pytest.mark.parametrize(
    "names",
    [
        [f"DNS:{host}" for host in HOSTS],
        ["DNS:FIRMA.example", "DNS:*.firma.example"],
    ],
)
def test_right_certificate_is_taken(
    tmp_path: Path, answers: Answers, names: list[str]
) -> None:
    """By its names, or by a wildcard for those below one."""
    certify(tmp_path, *names)

    assert look(answers, "certificate") == []
    assert look(answers, "certificate_key") == []


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (["DNS:firma.example"], HOSTS[1:]),
        (["DNS:*.firma.example"], HOSTS[:1]),
        (["DNS:*.example"], HOSTS[1:]),
        (["IP:127.0.0.1"], HOSTS),
    ],
)
def test_name_that_it_has_not_is_told(
    tmp_path: Path, answers: Answers, names: list[str], missing: tuple[str, ...]
) -> None:
    """A browser would refuse it: a wildcard stands for one label and no more."""
    certify(tmp_path, *names)

    (fault,) = look(answers, "certificate")

    assert fault.endswith(f"is not for {', '.join(missing)}")


def test_certificate_that_ended_is_told(
    tmp_path: Path, answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its last day."""
    certify(tmp_path, *(f"DNS:{host}" for host in HOSTS))

    class Later(datetime):
        """What the clock says in three days."""

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + timedelta(days=3)

    monkeypatch.setattr(public_names, "datetime", Later)

    (fault,) = look(answers, "certificate")

    assert "server.pem: ended 20" in fault


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("server.pem", b"x", "has no certificate"),
        ("server.pem", b"x" * 1_048_577, "more than 1,048,576 bytes"),
        ("server.key", b"x", "is no key"),
    ],
)
def test_file_that_is_none_is_told(
    tmp_path: Path, answers: Answers, file: str, content: bytes, told: str
) -> None:
    """Of the key nothing more is said where the certificate is at fault."""
    certify(tmp_path, *(f"DNS:{host}" for host in HOSTS))
    (tmp_path / file).write_bytes(content)
    which = {"server.pem": "certificate", "server.key": "certificate_key"}

    assert [told in fault for fault in look(answers, which.pop(file))] == [True]
    assert [look(answers, key) for key in which.values()] == [[]]


def test_folder_in_the_place_of_a_file_is_told(
    tmp_path: Path, answers: Answers
) -> None:
    """And nothing is read for ever, as of a device."""
    (tmp_path / "server.pem").mkdir()

    (fault,) = look(answers, "certificate")

    assert "cannot be read" in fault


def test_key_of_another_is_told(tmp_path: Path, answers: Answers) -> None:
    """The web server would not start."""
    certify(tmp_path, *(f"DNS:{host}" for host in HOSTS))
    _, other = make_authority(tmp_path).certify(tmp_path, "firma.example")
    certify_again = tmp_path / "again"
    certify_again.mkdir()
    certify(certify_again, *(f"DNS:{host}" for host in HOSTS))
    shutil.copy(certify_again / "server.pem", tmp_path / "server.pem")

    (fault,) = look(answers, "certificate_key")

    assert str(other) in fault
    assert "is not the key of" in fault


def test_key_with_a_password_is_told(tmp_path: Path, answers: Answers) -> None:
    """A web server that starts by itself cannot type it."""
    certify(tmp_path, *(f"DNS:{host}" for host in HOSTS))
    key = tmp_path / "server.key"
    subprocess.run(
        ["openssl", "ec", "-aes128", "-passout", "pass:x", "-in", key, "-out", key],
        check=True,
        capture_output=True,
    )

    (fault,) = look(answers, "certificate_key")

    assert "has a password" in fault


def test_what_is_not_there_yet_stops_nobody(
    answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and certificate may come after: it is told, and looked at by no answer."""

    def unknown(host: str) -> set[str]:
        msg = f"{host}: has no address"
        raise SettingsError(msg)

    assert look(answers, "certificate") == look(answers, "certificate_key") == []
    monkeypatch.setattr(public_names, "addresses_of_host", unknown)
    told = list(public_names.missing_yet(answers))

    assert [line.partition(":")[0] for line in told] == [
        *HOSTS,
        answers.certificate,
        answers.certificate_key,
    ]
