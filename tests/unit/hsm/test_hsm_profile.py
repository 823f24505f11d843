"""HSM profiles: what is read, and what is refused by name."""

from pathlib import Path

import pytest
from pydantic import ValidationError

import hsm_config.profile
from appliance.settings import HsmSettings, SettingsError
from hsm_config.profile import load_profile, refuse_sessions

GOOD = """\
name = "acme"
standing = "documented"
modules = ["/opt/acme/lib.so"]
[keys]
algorithms = ["rsa-2048"]
pss = false
wrap = []
[quirks]
makes_tokens = false
pin_chars = 16
rewrites_tokens = false
start_tries = 1
wraps_unextractable = false
"""


def _profile(folder: Path, text: str) -> str:
    path = folder / "acme.toml"
    path.write_text(text, "utf-8")
    return str(path)


def test_softhsm_profile_is_found_by_name() -> None:
    """The one that comes with us, ready to use."""
    profile = load_profile("softhsm2")

    assert profile.name == "softhsm2"
    assert profile.config_env == "SOFTHSM2_CONF"
    assert profile.quirks.makes_tokens
    assert profile.quirks.rewrites_tokens
    assert profile.quirks.several_threads


def test_profile_of_ones_own_is_read_by_path(tmp_path: Path) -> None:
    """A make that we do not know needs a file, not a release."""
    profile = load_profile(_profile(tmp_path, GOOD))

    assert profile.modules == (Path("/opt/acme/lib.so"),)
    assert profile.config_env is None
    assert profile.quirks.start_tries == 1
    assert profile.quirks.ec_unwrap_point is None
    assert not profile.quirks.several_threads
    assert profile.resident_only


def test_unknown_profile_names_those_there_are() -> None:
    """A misspelt name is answered with the right ones."""
    with pytest.raises(SettingsError, match=r"profiles here: .*softhsm2"):
        load_profile("softhms2")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "acme"', 'name = "acme"\nslot = 3', "slot: unknown key; allowed"),
        ("pin_chars = 16", "pin_chars = 16\npin = 3", "quirks.pin: unknown key"),
        ('name = "acme"\n', "", "name: a text is needed"),
        ("makes_tokens = false", "makes_tokens = 0", "quirks.makes_tokens: true or"),
        ("pin_chars = 16", "pin_chars = 4", "quirks.pin_chars: a whole number from 8"),
        ("start_tries = 1", "start_tries = true", "quirks.start_tries: a whole"),
        ('["/opt/acme/lib.so"]', "[]", "modules: a list of paths"),
        ("[quirks]", "[quirk]", "quirk: unknown key"),
        ('"documented"', '"rumoured"', "standing: one of tested, documented"),
        ("wrap = []", 'wrap = ["rot13"]', "keys.wrap: a list of these"),
        ("wrap = []", "wrap = 3", "keys.wrap: a list of these"),
        ('["rsa-2048"]', '["dsa"]', "keys.algorithms: a list of these"),
        ('["rsa-2048"]', "[]", "keys.algorithms: at least one is needed"),
        ("wrap = []", "wrap = []\nwrap_numbers = { dsa = 1 }", "keys.wrap_numbers.dsa"),
        ("wrap = []", "wrap = []\nopens = { dsa = 1 }", "keys.opens.dsa"),
        (
            "wrap = []",
            'wrap = []\nwrap_numbers = { "aes-kwp" = 1 }',
            "keys.wrap_numbers.aes-kwp: a whole number",
        ),
        ("start_tries = 1", "start_tries = 1\nec_unwrap_point = 1", "ec_unwrap_point"),
        (
            "start_tries = 1",
            "start_tries = 1\nseveral_threads = 2",
            "quirks.several_threads: true or false",
        ),
        ("[quirks]", "[quirks", "not valid TOML"),
    ],
)
def test_bad_profile_is_refused_by_key(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    """Each fault names the file, the key and the remedy."""
    path = _profile(tmp_path, GOOD.replace(old, new))

    with pytest.raises(SettingsError) as caught:
        load_profile(path)

    assert path in str(caught.value)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "make",
    sorted(
        p.stem for p in Path(hsm_config.profile.__file__).parent.glob("profiles/*.toml")
    ),
)
def test_several_sessions_only_where_the_profile_says_so(make: str) -> None:
    """One session is good for any make."""
    profile = load_profile(make)
    hsm = HsmSettings.model_construct(sessions=1)
    refuse_sessions(hsm, profile)

    several = hsm.model_copy(update={"sessions": 2})
    if profile.quirks.several_threads:
        refuse_sessions(several, profile)
        return
    with pytest.raises(SettingsError, match=rf"hsm\.sessions: the profile {make} does"):
        refuse_sessions(several, profile)


@pytest.mark.parametrize(("sessions", "is_good"), [(0, 0), (1, 1), (64, 1), (65, 0)])
def test_sessions_are_one_to_sixty_four(sessions: int, is_good: int) -> None:
    """The setting's limits."""
    token = {"label": "t", "pin_file": "/p"}
    given = {"firma": token, "pki": token, "sessions": sessions}

    if is_good:
        assert HsmSettings.model_validate(given).sessions == sessions
        return
    with pytest.raises(ValidationError, match="sessions"):
        HsmSettings.model_validate(given)
