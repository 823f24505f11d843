"""Addresses of the faces in the settings, and who may open which secret."""

import re
from pathlib import Path

import pytest

from appliance.bootstrap import open_admin, open_front
from appliance.cli import main
from appliance.database.migrate import migrate
from appliance.domain.clock import SystemClock
from appliance.domain.vocab import VouchedBy
from appliance.settings import SettingsError, load_settings


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    """What `rubrica init --trial` writes."""
    assert main(["init", "--trial", str(tmp_path)]) == 0
    return tmp_path / "settings.toml"


def changed(settings_file: Path, old: str, new: str) -> Path:
    """The same file with one thing changed."""
    text = settings_file.read_text(encoding="utf-8")
    assert re.search(old, text)
    settings_file.write_text(re.sub(old, new, text, count=1), encoding="utf-8")
    return settings_file


def test_init_writes_three_faces_of_their_own(settings_file: Path) -> None:
    """Each face has a free port; the frame's site is not the API's."""
    web = load_settings(settings_file).web

    listeners = {web.listen_api, web.listen_embed, web.listen_admin}
    assert len(listeners) == 3
    assert web.base_url == f"http://{web.listen_api}"
    assert web.admin_url == f"http://{web.listen_admin}"
    assert web.iframe_url == "http://localhost:" + web.listen_embed.split(":")[1]


def test_web_url_is_base_url_unless_set(settings_file: Path) -> None:
    """One listener serves both addresses, under one name or two."""
    web = load_settings(settings_file).web
    assert web.web_url == web.base_url

    changed(settings_file, r"\[web\]", '[web]\nweb_url = "https://web.example"')
    assert load_settings(settings_file).web.web_url == "https://web.example"


@pytest.mark.parametrize("other", ["base_url", "admin_url"])
def test_frame_without_an_origin_of_its_own_is_refused(
    settings_file: Path, other: str
) -> None:
    """A page of the API or the console must not share the frame's origin."""
    address = getattr(load_settings(settings_file).web, other)
    changed(settings_file, 'iframe_url = ".*"', f'iframe_url = "{address}"')

    with pytest.raises(SettingsError, match="an origin of its own"):
        load_settings(settings_file)


@pytest.mark.parametrize("prefix", ["", "Svc", "svc.", "a b", "1svc"])
def test_event_prefix_is_a_word(settings_file: Path, prefix: str) -> None:
    """The prefix is one word in front of a dot, `svc` unless set."""
    assert load_settings(settings_file).event_prefix == "svc"
    changed(settings_file, "trial = true", f'trial = true\nevent_prefix = "{prefix}"')

    with pytest.raises(SettingsError, match="event_prefix"):
        load_settings(settings_file)


async def test_console_invites_without_the_pepper(settings_file: Path) -> None:
    """The console's role works where the pepper's file is not even there."""
    settings = load_settings(settings_file)
    await migrate(settings)
    settings.secrets.pepper_file.unlink()

    async with open_admin(settings, SystemClock()) as admin:
        made = await admin.invitations.invite(
            "console:c", "20055361682", "Ana", "ana@demo.example", VouchedBy.DEMO
        )

    assert made.url.startswith(f"{settings.web.base_url}/alta/")
    with pytest.raises(SettingsError, match="pepper"):
        async with open_front(settings, SystemClock(), "api"):
            pass
