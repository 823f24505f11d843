"""The settings file: what is refused, and in which words."""

from pathlib import Path

import pytest

from appliance.settings import Settings, SettingsError, load_settings

GOOD = """\
data_dir = "datos"
run_dir = "/run/rubrica"
[hsm.firma]
label = "firma"
pin_file = "secrets/firma.pin"
[hsm.pki]
label = "pki"
pin_file = "/etc/pki.pin"
[secrets]
pepper_file = "secrets/pepper"
data_key_file = "secrets/data-key"
lookup_key_file = "secrets/lookup-key"
"""

PROD_WEB = """\
[web]
base_url = "https://firma.example"
iframe_url = "https://marco.firma.example"
[database]
url = "postgresql://rubrica@127.0.0.1:5432/rubrica"
"""
PROD = 'environment = "PROD"\n' + GOOD
PROD += PROD_WEB.replace("[web]", "[web]\ntrusted_proxies = []")


def load(folder: Path, text: str) -> Settings:
    """Load a file of that text."""
    path = folder / "settings.toml"
    path.write_text(text, encoding="utf-8")
    return load_settings(path)


def refusal(folder: Path, text: str) -> str:
    """What is said of a file that cannot be used."""
    with pytest.raises(SettingsError) as caught:
        load(folder, text)
    return str(caught.value)


def test_settings_take_defaults(tmp_path: Path) -> None:
    """What must be said is little; the rest has a safe default."""
    settings = load(tmp_path, GOOD)

    assert (settings.trial, settings.environment.value) == (False, "PREPROD")
    assert settings.signing.wait_s == 20
    assert settings.database.url == "sqlite"


def test_relative_paths_count_from_the_file(tmp_path: Path) -> None:
    """Wherever the command is run; absolute ones stay as they are."""
    settings = load(
        tmp_path,
        GOOD + 'document_key_file = "secrets/document"\n'
        '[documents]\npath = "pdf"\n[redis]\nsocket = "r.sock"\n'
        '[sandbox]\nsocket = "s.sock"\n[database]\n'
        'url = "postgresql://rubrica@127.0.0.1/rubrica"\npassword_file = "pg"\n',
    )

    assert settings.data_dir == tmp_path / "datos"
    assert settings.run_dir == Path("/run/rubrica")
    assert settings.hsm.firma.pin_file == tmp_path / "secrets/firma.pin"
    assert settings.hsm.pki.pin_file == Path("/etc/pki.pin")
    assert settings.secrets.pepper_file == tmp_path / "secrets/pepper"
    assert settings.document_key_file == tmp_path / "secrets/document"
    assert settings.documents_dir == tmp_path / "pdf"
    assert settings.redis_socket == tmp_path / "r.sock"
    assert settings.sandbox_socket == tmp_path / "s.sock"
    assert settings.database.password_file == tmp_path / "pg"


def test_folders_follow_from_data_and_run(tmp_path: Path) -> None:
    """Documents lie with the data, sockets with the sockets."""
    settings = load(tmp_path, GOOD)

    assert settings.documents_dir == tmp_path / "datos/documents"
    assert settings.document_key_file == tmp_path / "secrets/document-key"
    assert settings.redis_socket == Path("/run/rubrica/redis.sock")
    assert settings.sandbox_socket == Path("/run/rubrica/sandbox.sock")


def test_bucket_and_prefix_are_read(tmp_path: Path) -> None:
    """With the key's files, which count from the file's folder as all others do."""
    settings = load(
        tmp_path,
        GOOD + '[documents]\nurl = "s3://docs.acme/a/b/"\nendpoint = '
        '"https://s3.example:9000"\naccess_key_file = "secrets/id"\n'
        'secret_key_file = "/etc/key"\n',
    )

    assert settings.documents.bucket == ("docs.acme", "a/b")
    assert settings.documents.access_key_file == tmp_path / "secrets/id"
    assert settings.documents.secret_key_file == Path("/etc/key")
    assert load(tmp_path, GOOD).documents.bucket is None


@pytest.mark.parametrize(
    ("text", "key", "allowed"),
    [
        (GOOD.replace("data_dir", "tiral = true\ndata_dir", 1), "tiral", "trial"),
        (GOOD + "[signing]\nwaits = 3\n", "signing.waits", "wait_s"),
        (GOOD + "[hsm2]\nx = 1\n", "hsm2", "hsm"),
        (
            GOOD.replace('label = "pki"', 'label = "pki"\npin = "1234"'),
            "hsm.pki.pin",
            "label, pin_file",
        ),
    ],
)
def test_unknown_key_named_with_what_is_allowed(
    tmp_path: Path, text: str, key: str, allowed: str
) -> None:
    """One line: the file, the key, and the keys that may stand there."""
    said = refusal(tmp_path, text)

    assert said.startswith(f"{tmp_path / 'settings.toml'}: {key}: unknown key;")
    assert allowed in said.partition("allowed here: ")[2]
    assert "\n" not in said


def test_unknown_key_does_not_tell_its_value(tmp_path: Path) -> None:
    """A secret put there by mistake is not printed."""
    said = refusal(
        tmp_path, GOOD.replace('label = "pki"', 'label = "pki"\npin = "s3cr3t"')
    )

    assert "s3cr3t" not in said


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("[signing]\nwait_s = 0\n", "signing.wait_s"),
        ("[signing]\nwait_s = 86401\n", "signing.wait_s"),
        ("[signing]\nwrong_passwords = 2\n", "signing.wrong_passwords"),
        ("[signing]\nlink_ttl_s = 604801\n", "signing.link_ttl_s"),
        ('[web]\nbase_url = "ftp://x"\n', "web.base_url"),
        ('[web]\nbase_url = "https://x/"\n', "web.base_url"),
        ('[web]\ncors_origins = "https://a"\n', "web.cors_origins"),
        ('[log]\nlevel = "loud"\n', "log.level"),
        ("[auth]\ntoken_ttl_s = 901\n", "auth.token_ttl_s"),
        ("[documents]\nlimit_bytes = 1\n", "documents.limit_bytes"),
        ('[sandbox]\ncpu_s = "many"\n', "sandbox.cpu_s"),
    ],
)
def test_bad_value_names_file_and_key(tmp_path: Path, more: str, key: str) -> None:
    """A value out of its range is refused before any port opens."""
    said = refusal(tmp_path, GOOD + more)

    assert said.startswith(f"{tmp_path / 'settings.toml'}: {key}: ")
    assert "\n" not in said


def test_every_fault_has_its_line(tmp_path: Path) -> None:
    """Two faults, two lines: an operator mends them in one go."""
    said = refusal(tmp_path, GOOD + "[signing]\nwait_s = 0\nwaits = 1\n")

    assert [line.split(": ")[1] for line in said.splitlines()] == [
        "signing.wait_s",
        "signing.waits",
    ]


def test_missing_key_is_named(tmp_path: Path) -> None:
    """What must be said and is not is named by its full name."""
    said = refusal(tmp_path, GOOD.replace('pepper_file = "secrets/pepper"\n', ""))

    assert ": secrets.pepper_file: " in said


def test_trial_refused_in_production(tmp_path: Path) -> None:
    """A trial's certificates have no worth, so it is no production."""
    said = refusal(tmp_path, 'trial = true\nenvironment = "PROD"\n' + GOOD)

    assert "a trial cannot be PROD" in said


def test_production_without_trial_is_fine(tmp_path: Path) -> None:
    """PROD by itself is allowed."""
    assert load(tmp_path, PROD).trial is False


@pytest.mark.parametrize("text", ["data_dir = ", "a = 1\na = 2\n", "\ufeff\0"])
def test_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    """The file is named, and that it is no TOML."""
    said = refusal(tmp_path, text)

    assert said.startswith(f"{tmp_path / 'settings.toml'}: not valid TOML (")


def test_file_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    """Bytes of another encoding are a fault of the file, not a crash."""
    path = tmp_path / "settings.toml"
    path.write_bytes(b'installation = "\xf1"\n')

    with pytest.raises(SettingsError, match="not valid TOML"):
        load_settings(path)


def test_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    """The file is named, and why it cannot be read."""
    with pytest.raises(SettingsError, match="No such file"):
        load_settings(tmp_path / "none.toml")


def test_settings_cannot_be_changed(tmp_path: Path) -> None:
    """Whoever holds the settings holds what the file says."""
    settings = load(tmp_path, GOOD)

    with pytest.raises(ValueError, match="frozen"):
        settings.trial = True


def test_activation_keys_are_in_memory_by_default(tmp_path: Path) -> None:
    """In /dev/shm, in a folder of this installation; or where it is said."""
    one = load(tmp_path, GOOD).activation_dir
    two = load(tmp_path, GOOD.replace("datos", "otros")).activation_dir
    said = load(
        tmp_path,
        GOOD.replace("[hsm.firma]", '[hsm]\nactivation_dir = "a"\n[hsm.firma]'),
    )

    assert str(one.parent) == "/dev/shm"  # noqa: S108 (named, not used)
    assert one != two
    assert said.activation_dir == tmp_path / "a"


def test_production_must_say_what_is_before_it(tmp_path: Path) -> None:
    """Behind a proxy that nobody names all clients would be one."""
    said = refusal(tmp_path, f'environment = "PROD"\n{GOOD}{PROD_WEB}')

    assert "\n" not in said
    assert "web.trusted_proxies: PROD needs the networks" in said
    assert load(tmp_path, PROD).web.trusted_proxies == ()
    assert load(tmp_path, GOOD).web.trusted_proxies is None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ('["10.0.0.0/24", "fd00::/8", "10.1.1.1", "unix"]', ""),
        ('["nginx"]', "'nginx': must be a network"),
        ('["10.0.0.1/24"]', "'10.0.0.1/24': must be a network"),
        ('["0.0.0.0/0"]', "'0.0.0.0/0': everybody could name"),
        ('["::/0"]', "'::/0': everybody could name"),
    ],
)
def test_trusted_proxies_are_networks(tmp_path: Path, value: str, said: str) -> None:
    """Of addresses that exist, and not everybody."""
    text = f"{GOOD}[web]\ntrusted_proxies = {value}\n"
    if said:
        assert said in refusal(tmp_path, text)
    else:
        assert load(tmp_path, text).web.trusted_proxies is not None
