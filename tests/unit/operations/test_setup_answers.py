"""Answers of `rubrica setup`, the settings and the web server's sample they make."""

import tomllib
from dataclasses import fields, replace
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

from appliance.operations.reachability import socket_place
from appliance.operations.setup import questions
from appliance.operations.setup.proxy import SAMPLES, fits, sample_for
from appliance.operations.setup.questions import ask_all, look
from appliance.operations.setup_answers import (
    BUCKET_SETTINGS_OF,
    SETTINGS_OF,
    Answers,
    settings_text,
)
from appliance.operations.system import write_if_missing
from appliance.settings import SettingsError, load_settings
from appliance.settings.faults import read_tables
from tests.support.appliance.manual import blocks

_DOCS = Path(__file__).resolve().parents[3] / "docs"
GIVEN = {
    "environment": "PROD",
    "base_url": "https://firma.example",
    "iframe_url": "https://marco.firma.example",
    "admin_url": "https://consola.firma.example",
}


def test_settings_of_the_manual_are_those_of_setup() -> None:
    """Who installs by hand writes what setup would have written."""
    given = blocks("First installation, with systemd")
    manual = next(block.text for block in given if block.language == "toml")
    told = tomllib.loads(manual)
    named = {**GIVEN, "installation": told["installation"]}

    assert tomllib.loads(settings_text(Answers.of(named))) == told


def test_every_answer_reaches_the_settings(tmp_path: Path) -> None:
    """Under the key that is named for it."""
    answers = Answers.of(
        {
            **GIVEN,
            "installation": "ACME Firma",
            "documents": "/srv/documentos",
            "hsm_module": "/usr/lib/otro.so",
            "firma_label": "una",
            "pki_label": "otra",
            "database": "postgresql://db.example/rubrica",
            "redis": "rediss://redis.example:6379/0",
            "trusted_proxies": "10.0.0.0/24 10.0.1.0/24",
        }
    )
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(answers))
    load_settings(path)
    tables = tomllib.loads(path.read_text())

    for name, key in SETTINGS_OF.items():
        found: Any = tables
        for word in key.split("."):
            found = found[word]
        told = " ".join(found) if isinstance(found, list) else found
        assert told == getattr(answers, name), key


def test_answers_for_a_bucket_reach_the_settings(tmp_path: Path) -> None:
    """Under the keys that are named for them; of a folder none of them is there."""
    answers = Answers.of(
        {
            **GIVEN,
            "documents": "s3://docs/rubrica",
            "documents_endpoint": "https://s3.example:9000",
            "documents_region": "eu-1",
            "documents_root_certificate_file": "/etc/rubrica/s3-ca.pem",
        }
    )
    tables = tomllib.loads(settings_text(answers))

    for name, key in BUCKET_SETTINGS_OF.items():
        assert tables["documents"][key.partition(".")[2]] == getattr(answers, name)
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(replace(answers, documents_endpoint="")))
    assert load_settings(path).documents.endpoint is None
    assert "documents" not in tomllib.loads(settings_text(Answers.of(GIVEN)))


def test_servers_elsewhere_have_passwords_and_authorities(tmp_path: Path) -> None:
    """Files of their own, where setup puts them; TLS is checked unless told."""
    given = {
        **GIVEN,
        "database": "postgresql://db.example/rubrica",
        "database_ca": "/root/ca.pem",
        "redis": "rediss://redis.example:6379/0",
        "redis_ca": "/root/other.pem",
        "redis_password_file": "/root/redis",
    }
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(Answers.of(given)))

    settings = load_settings(path)

    assert settings.database.tls == "verify-full"
    assert settings.database.password_file == Path("/etc/rubrica/secrets/database")
    assert (
        str(settings.database.root_certificate_file) == "/etc/rubrica/database-ca.pem"
    )
    assert settings.redis.password_file == Path("/etc/rubrica/secrets/redis")
    assert str(settings.redis.root_certificate_file) == "/etc/rubrica/redis-ca.pem"
    assert "/root" not in path.read_text()


@pytest.mark.parametrize("text", ['a"b', "a\\b", "a\nb", "ñ\x7f", '"""'])
def test_no_answer_breaks_the_file(text: str) -> None:
    """Whatever it holds, it stays one text."""
    made = tomllib.loads(settings_text(Answers.of({**GIVEN, "documents": text})))

    assert made["documents"]["path"] == text


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("environment", "TEST", "one of PREPROD, PROD"),
        ("installation", "a<b", "of the form"),
        ("base_url", "firma.example", "https://firma.example"),
        ("base_url", "http://firma.example", "https"),
        ("iframe_url", "https://firma.example", "origin"),
        ("admin_url", "https://firma.example", "origin of its own"),
        ("database", "mysql://x", "postgresql://"),
        ("database", "sqlite", "needs postgresql://"),
        ("database", "postgresql:///r?host=/nowhere/run", "no PostgreSQL listens"),
        ("redis", "redis://127.0.0.1:1/0", "Redis does not answer"),
        ("redis", "http://x", "redis://"),
        ("redis", "rediss://127.0.0.1:1/0", "does not answer"),
        ("redis_password_file", "/nowhere", "cannot be read"),
        ("redis_ca", "/nowhere", "cannot be read"),
        ("redis_ca", "/etc/passwd", "holds no certificates"),
        ("database", "postgresql://127.0.0.1:1/rubrica", "does not answer"),
        ("database_ca", "/nowhere", "cannot be read"),
        ("documents", "documentos", "absolute"),
        ("documents", "/srv/mis documentos", "letters"),
        ("documents", "/srv/%h", "letters"),
        ("documents", "/etc/passwd/x", "is no folder"),
        ("documents", "s3:/docs", "s3://bucket"),
        ("hsm_profile", "softhsm3", "softhsm2"),
        ("hsm_module", "/nowhere.so", "is not there"),
        ("proxy", "iis", "nginx"),
        ("trusted_proxies", "everybody", "network"),
        ("administrator", "Ana Pérez", "a-z, 0-9, . - and _, 2 to 40"),
        ("administrator_password_file", "/nowhere", "cannot be read"),
        ("administrator_password_file", "/etc/debian_version", "12 characters or more"),
    ],
)
def test_answer_that_will_not_do_is_told(key: str, value: str, told: str) -> None:
    """By its own key, with what would do."""
    faults = look(Answers.of({**GIVEN, key: value}), key)

    assert faults
    assert any(told in fault for fault in faults), faults


def test_every_fault_of_a_file_is_told_at_once(tmp_path: Path) -> None:
    """Where nobody is asked again."""
    path = tmp_path / "answers.toml"
    path.write_text('environment = "TEST"\nproxy = "iis"\n')

    with pytest.raises(SettingsError) as refused:
        ask_all(Answers.read(path), interactive=False)

    lines = str(refused.value).splitlines()
    assert any(line.startswith("environment: ") for line in lines)
    assert any(line.startswith("proxy: ") for line in lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('entorno = "PROD"', "unknown key; allowed here: environment, "),
        ("environment = 7", "must be a text"),
        ("environment = ", "not valid TOML"),
    ],
)
def test_file_that_is_no_answers_file(tmp_path: Path, text: str, told: str) -> None:
    """It is named, and what is wrong."""
    path = tmp_path / "answers.toml"
    path.write_text(text)

    with pytest.raises(SettingsError, match=told):
        Answers.read(path)
    with pytest.raises(SettingsError, match="cannot be read"):
        Answers.read(tmp_path / "nowhere.toml")


def test_password_in_an_address_is_told_once() -> None:
    """And nothing of an SQLite, which nobody named."""
    given = {**GIVEN, "database": "postgresql://u:p@127.0.0.1/r"}

    with pytest.raises(SettingsError) as refused:
        ask_all(given, interactive=False)

    lines = str(refused.value).splitlines()
    (found,) = [line for line in lines if line.startswith("database")]
    assert found.startswith("database: has a password in it; put it alone into")


@pytest.mark.parametrize("environment", ["PREPROD", "PROD"])
def test_address_of_a_machine_without_a_full_name_is_told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: str,
) -> None:
    """It stays for years, and nobody typed it: in PROD it is refused."""
    monkeypatch.setattr("appliance.operations.setup_answers.getfqdn", lambda: "bare")
    monkeypatch.setattr(questions, "look", lambda *_: [])
    given = {"environment": environment}
    told = "base_url: https://bare is what this machine calls itself"

    if environment == "PROD":
        with pytest.raises(SettingsError, match=told):
            ask_all(given, interactive=False)
    else:
        assert ask_all(given, interactive=False).base_url == "https://bare"
        assert f"beware: {told}" in capsys.readouterr().out
    # One that somebody chose is theirs to know.
    ask_all({**given, "base_url": "https://intranet"}, interactive=False)
    assert "beware" not in capsys.readouterr().out


def test_terminal_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Until an answer will do; an empty one is the usual."""
    typed = iter(["TEST", "PROD"])
    asked: list[str] = []

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return next(typed)

    monkeypatch.setattr("builtins.input", answer)
    given = {
        field.name: getattr(Answers.of(GIVEN), field.name)
        for field in fields(Answers)
        if field.name not in {"environment", "database", "redis", "documents"}
    }
    monkeypatch.setattr("appliance.operations.setup.questions._LOOKS", {})
    monkeypatch.setattr(
        "appliance.operations.setup.questions._TEXTS", {"environment": "Entorno"}
    )

    answers = ask_all(given, interactive=True)

    assert answers.environment == "PROD"
    assert asked == ["Entorno [PREPROD]: "] * 2
    assert "one of PREPROD, PROD" in capsys.readouterr().out


@pytest.mark.parametrize("proxy", SAMPLES)
def test_sample_has_the_names_of_the_installation(proxy: str) -> None:
    """And none of the documentation's."""
    answers = Answers.of(
        {
            **GIVEN,
            "proxy": proxy,
            "base_url": "https://api.acme.test/firma",
            "iframe_url": "https://f.acme.test",
            "admin_url": "https://c.acme.test",
            "certificate": "/srv/a.pem",
            "certificate_key": "/srv/a.key",
        }
    )

    name, text = sample_for(answers, _DOCS / "samples")

    assert fits(answers)
    assert name == SAMPLES[proxy]
    assert "firma.example" not in text
    assert all(host in text for host in ("api.acme.test", "f.acme.test", "c.acme.test"))
    read_tables(tomllib.loads(settings_text(answers)))


@pytest.mark.parametrize(
    "other",
    [
        {"admin_url": "https://firma.example:8444"},
        {"iframe_url": "https://marco.firma.example:8443"},
        {"proxy": "other"},
        {"proxy": "none"},
    ],
)
def test_no_sample_where_none_fits(other: dict[str, str]) -> None:
    """A sample with the wrong port would be worse than none."""
    assert not fits(Answers.of({**GIVEN, **other}))


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("postgresql:///rubrica?host=/run/postgresql", ("/run/postgresql", 5432)),
        ("postgresql:///r?host=/run/postgresql&port=5433", ("/run/postgresql", 5433)),
        ("postgresql://db.example/rubrica", None),
        ("postgresql://u@one:5432,two:5432/rubrica", None),
    ],
)
def test_database_of_this_machine(url: str, place: tuple[str, int] | None) -> None:
    """By its socket, where its users are the system's."""
    assert socket_place(url) == place


def test_fault_of_no_answer_in_particular_is_told() -> None:
    """Before anything is written: the settings would never load."""
    given = {**GIVEN, "base_url": f"https://{'a' * 250}.example", "proxy": "none"}
    with pytest.raises(SettingsError, match=r"stamp\.verify_url"):
        ask_all(given, interactive=False)


def test_file_is_its_owners_before_it_holds_anything(tmp_path: Path) -> None:
    """Whole, with its mode; one that is there stays as it is."""
    path = tmp_path / "pepper"

    write_if_missing(path, "uno", mode=0o600, owner=getuser())
    write_if_missing(path, "otro", mode=0o644, owner=getuser())

    assert path.read_text() == "uno"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(SettingsError, match="is not there"):
        write_if_missing(tmp_path / "no" / "x", "uno", mode=0o600, owner=getuser())
