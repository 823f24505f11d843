"""`rubrica setup --compose`: the folder that containers are started from.

tests/functional/installation/test_compose.py starts them.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import asyncpg
import pytest

from appliance.database.rights import OWNER, Role
from appliance.operations import compose, system
from appliance.operations.setup.questions import ask_all
from appliance.operations.setup_answers import Answers, settings_text
from appliance.settings import SettingsError, load_settings
from tests.support.appliance.separate_users import SeparateUsers
from tests.support.processes.terminal import CTRL_C, CTRL_D, Dialogue, at_terminal

_ROOT: Final = Path(__file__).resolve().parents[3]
_COMPOSE: Final = _ROOT / "packaging" / "compose"
_DOCS: Final = _ROOT / "docs"
_IN_THE_IMAGE: Final = f"""
import sys
from pathlib import Path
from appliance.cli import main
from appliance.operations import system
system.COMPOSE, system.DOCS = Path({str(_COMPOSE)!r}), Path({str(_DOCS)!r})
sys.exit(main())
"""
"""The command line, where the image has its files."""
_PRODUCTION: Final = {
    "environment": "PROD",
    "base_url": "https://firma.example",
    "iframe_url": "https://marco.firma.example",
    "admin_url": "https://consola.firma.example",
}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to give away")


@pytest.fixture(autouse=True)
def _in_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "COMPOSE", _COMPOSE)


def _answers(given: dict[str, str]) -> Answers:
    return ask_all(given, interactive=False, layout=compose.LAYOUT)


def _seen(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, owner and time of each file."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mode & 0o7777,
            path.stat().st_uid,
            path.stat().st_mtime_ns if path.is_file() else 0,
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("given", [{}, _PRODUCTION])
def test_settings_are_good(given: dict[str, str], tmp_path: Path) -> None:
    """By themselves on this machine's addresses, and of a PROD."""
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(_answers(given), compose.LAYOUT))

    settings = load_settings(path)

    host = urlsplit(given.get("base_url", "http://127.0.0.1:8080"))
    assert urlsplit(settings.web.base_url) == host
    assert settings.web.listen_api == "0.0.0.0:8080"
    assert settings.sandbox_socket == Path("/run/sandbox/sandbox.sock")
    assert settings.database.password_file == Path("/run/secrets/database")
    assert settings.redis.password_file == Path("/run/secrets/redis")
    trusted = settings.web.trusted_proxies
    assert [str(each) for each in trusted or ()] == ["10.201.77.1"]
    # The network that it is the gateway of.
    assert "gateway: 10.201.77.1}" in (_COMPOSE / "compose.yaml").read_text("utf-8")


def test_what_compose_has_is_not_to_be_answered() -> None:
    """It is told, and where it is changed."""
    with pytest.raises(SettingsError, match=r"database: is 'postgresql:.* afterwards"):
        _answers({"database": "postgresql://db.example/rubrica"})


def test_outside_the_image_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is no compose.yaml to write."""
    monkeypatch.setattr(system, "COMPOSE", tmp_path / "nowhere")

    with pytest.raises(SettingsError, match="--compose is for the image"):
        compose.make(tmp_path, _answers({}))


@as_root
def test_folder_is_made_once(tmp_path: Path) -> None:
    """With its owners; again, nothing is another, and a lost key is not made anew."""
    answers = _answers({})
    compose.make(tmp_path, answers)
    made = _seen(tmp_path)

    compose.make(tmp_path, None)

    assert _seen(tmp_path) == made
    assert {name: seen[:2] for name, seen in made.items()} == {
        "settings.toml": (0o644, 0),
        "compose.yaml": (0o644, 0),
        "redis.conf": (0o400, 10001),
        "roles.sql": (0o400, 10002),
        "database": (0o755, 0),
        "database/Containerfile": (0o644, 0),
        "database/start": (0o755, 0),
        "hsm": (0o700, 10001),
        "work": (0o700, 10001),
        "secrets": (0o700, 10001),
        **{
            f"secrets/{name}": (0o600, 10001)
            for name in (
                *("pepper", "data-key", "document-key", "lookup-key", "redis"),
                *("database", "mail-password"),
                *(f"database-{role.value.removeprefix('rubrica-')}" for role in Role),
            )
        },
    }
    (tmp_path / "secrets" / "document-key").unlink()
    with pytest.raises(SettingsError, match=r"document-key: .* from a backup"):
        compose.make(tmp_path, None)


def _at_terminal(folder: Path, typed: Mapping[str, Sequence[str]]) -> Dialogue:
    """What a new operator of containers sees and types."""
    command = ("setup", "--compose", str(folder))
    return at_terminal([sys.executable, "-c", _IN_THE_IMAGE, *command], typed)


@as_root
def test_enter_makes_what_is_usual(tmp_path: Path) -> None:
    """Of this machine alone: nothing is asked that has no use there."""
    done = _at_terminal(tmp_path / "asked", {})

    assert done.status == 0, done.told
    asked = [each.partition(" [")[0] for each in done.asked]
    assert len(set(asked)) == len(asked)
    for settled in ("PostgreSQL", "Redis", "documents", "certificate", "private key"):
        assert not any(settled in each for each in asked), asked
    assert done.asked[2].endswith("[http://127.0.0.1:8080]:")
    assert done.told.startswith("Enter takes")
    assert done.told.rstrip().endswith("--out contrato-firmado.pdf")
    assert "Traceback" not in done.told
    compose.make(tmp_path / "usual", _answers({}))
    texts = [tmp_path / name / "settings.toml" for name in ("asked", "usual")]
    assert texts[0].read_text() == texts[1].read_text()
    again = _at_terminal(tmp_path / "asked", {})
    assert again.status == 0
    assert again.asked == []


@as_root
def test_answers_are_looked_at_as_they_are_typed(tmp_path: Path) -> None:
    """What cannot be is told and asked again; what follows from one is offered."""
    typed = {
        "Environment": ["TEST", "PROD"],
        "Public address": ["firma.example", "https://firma.example"],
        "HSM profile": ["softhsm9", ""],
        "Web server": ["iis", "caddy"],
        "Its TLS certificate": ["/srv/firma.pem"],
    }

    done = _at_terminal(tmp_path, typed)

    assert done.status == 0, done.told
    for question in ("Environment", "Public address", "HSM profile", "Web server"):
        count = sum(each.startswith(question) for each in done.asked)
        assert count == 2, (question, done.told)
    assert "one of PREPROD, PROD" in done.told
    assert "must be one of nginx, caddy, haproxy, other, none" in done.told
    assert any(each.endswith("[https://marco.firma.example]:") for each in done.asked)
    settings = load_settings(tmp_path / "settings.toml")
    assert settings.environment == "PROD"
    assert settings.web.base_url == "https://firma.example"
    sample = (tmp_path / "Caddyfile").read_text()
    assert "/srv/firma.pem" in sample
    assert "marco.firma.example" in sample


@as_root
@pytest.mark.parametrize(("pressed", "status"), [(CTRL_C, 130), (CTRL_D, 1)])
def test_who_gives_up_has_made_nothing(
    tmp_path: Path, pressed: str, status: int
) -> None:
    """In the midst of the questions, without a traceback."""
    done = _at_terminal(tmp_path / "new", {"HSM profile": [pressed]})

    assert done.status == status
    assert "Traceback" not in done.told
    assert not (tmp_path / "new").exists()


@as_root
def test_compose_file_of_an_older_version_is_renewed(tmp_path: Path) -> None:
    """The settings, which are the operator's, are not."""
    compose.make(tmp_path, _answers({}))
    (tmp_path / "compose.yaml").write_text("services: {}\n")
    (tmp_path / "settings.toml").write_text("# ours\n")

    compose.make(tmp_path, None)

    assert (tmp_path / "compose.yaml").read_text() == (
        _COMPOSE / "compose.yaml"
    ).read_text()
    assert (tmp_path / "settings.toml").read_text() == "# ours\n"


@as_root
async def test_each_user_of_the_database_has_its_password(tmp_path: Path) -> None:
    """PostgreSQL takes what roles.sql has of it, and no other's; none stands there."""
    compose.make(tmp_path, _answers({}))
    sql = (tmp_path / "roles.sql").read_text()
    names: dict[str, str] = {OWNER: "database"}
    for role in Role:
        names[role.value] = f"database-{role.value.removeprefix('rubrica-')}"
    passwords = {
        user: (tmp_path / "secrets" / name).read_text().strip()
        for user, name in names.items()
    }
    assert not [each for each in passwords.values() if each in sql]

    with SeparateUsers.made() as cluster:
        cluster.run_as_superuser(sql)
        place = urlsplit(cluster.server.tcp_url())
        for user, password in passwords.items():
            where = f"postgresql://{user}@{place.hostname}:{place.port}/rubrica"
            connection = await asyncpg.connect(where, password=password)
            assert await connection.fetchval("SELECT current_user") == user
            await connection.close()
            with pytest.raises(asyncpg.InvalidPasswordError):
                await asyncpg.connect(where, password=f"{password}0")
