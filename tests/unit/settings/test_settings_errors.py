"""Settings files that are wrong in ways of their own: each fault in its words."""

from pathlib import Path

import pytest

from tests.unit.settings.test_settings import GOOD, PROD, load, refusal

LONG = "/run/" + "x" * 100
BUCKET = '[documents]\nurl = "s3://docs"\naccess_key_file = "a"\n'
KEYED = f'{BUCKET}secret_key_file = "b"\n'


def told(folder: Path, text: str) -> list[str]:
    """The lines that are said of a file, without its name."""
    head = f"{folder / 'settings.toml'}: "
    lines = refusal(folder, text).splitlines()
    assert all(line.startswith(head) for line in lines)
    return [line.removeprefix(head) for line in lines]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            '[web]\nlisten_api = "127.0.0.1:99999"\n',
            "web.listen_api: '127.0.0.1:99999': must be host:port with a port from 1",
        ),
        ('[web]\nlisten_api = "8080"\n', "web.listen_api: '8080': must be host:port"),
        ('[web]\nlisten_api = "unix:"\n', "web.listen_api: 'unix:': must be host:port"),
        (
            '[web]\nlisten_admin = "127.0.0.1:8080"\n',
            "web.listen_admin: '127.0.0.1:8080': web.listen_api listens there;",
        ),
        (
            '[web]\nlisten_embed = "0.0.0.0:8080"\n',
            "web.listen_embed: '0.0.0.0:8080': web.listen_api listens there;",
        ),
        (
            '[web]\nlisten_embed = "localhost:8080"\n',
            "web.listen_embed: 'localhost:8080': web.listen_api listens there;",
        ),
        (
            '[web]\nlisten_api = "unix:/run/a"\nlisten_embed = "unix:/run/a"\n',
            "web.listen_embed: 'unix:/run/a': web.listen_api listens there;",
        ),
        (
            '[web]\nlisten_api = "unix:/run/rubrica/sandbox.sock"\n',
            "sandbox.socket: /run/rubrica/sandbox.sock: web.listen_api has that",
        ),
        (
            '[redis]\nsocket = "/run/s"\n[sandbox]\nsocket = "/run/s"\n',
            "redis.socket: /run/s: sandbox.socket has that socket;",
        ),
        (
            f'[sandbox]\nsocket = "{LONG}/sandbox.sock"\n',
            f"sandbox.socket: too long for the socket {LONG}/sandbox.sock (118 bytes",
        ),
        (
            f'{KEYED}path = "pdf"\n',
            "documents.path: documents are in documents.url; remove one of the two",
        ),
        (
            BUCKET,
            "documents.secret_key_file: is missing; documents.url needs it",
        ),
        (
            '[documents]\nsecret_key_file = "k"\n',
            "documents.secret_key_file: is for documents.url; set that, or remove it",
        ),
        (
            '[documents]\nurl = "https://docs.example"\n',
            "documents.url: must be s3://bucket or s3://bucket/prefix",
        ),
        (
            f'{KEYED}endpoint = "s3.example"\n',
            "documents.endpoint: must be https://host or https://host:port",
        ),
        (
            f'{KEYED}endpoint = "https://a:b@s3.example"\n',
            "documents.endpoint: has a user in it; set documents.access_key_file",
        ),
        (
            f'{KEYED}endpoint = "http://s3.example"\nroot_certificate_file = "c"\n',
            "documents.root_certificate_file: is for a documents.endpoint with https",
        ),
        (
            '[web]\nadmin_url = "http://127.0.0.1:8080"\n',
            "web.admin_url: must be an origin of its own",
        ),
        (
            '[web]\niframe_url = "http://127.0.0.1:8080"\n',
            "web.iframe_url: must be an origin of its own",
        ),
        (
            '[web]\nbase_url = "firma.example"\n',
            "web.base_url: 'firma.example': must be like 'https://firma.example'",
        ),
        (
            '[log]\nlevel = "loud"\n',
            "log.level: 'loud': must be one of debug, info, warning, error",
        ),
        (
            "[auth]\ntoken_ttl_s = 901\n",
            "auth.token_ttl_s: 901: must be a whole number",
        ),
        (
            '[sandbox]\ncpu_s = "many"\n',
            "sandbox.cpu_s: 'many': must be a whole number,",
        ),
        (
            "[signing]\nwait_s = 0\n",
            "signing.wait_s: 0: must be a number, > 0, ≤ 86400",
        ),
        (
            "[web]\ncors_origins = 3\n",
            "web.cors_origins: 3: must be a list, each a text",
        ),
        ("[timestamps]\npublic = 7\n", "timestamps.public: 7: must be true or false"),
        (
            '[database]\nurl = "mysql://h/x"\n',
            "database.url: must be sqlite, or postgre",
        ),
        (
            '[database]\nurl = "postgresql://r@h/x?sslmode=require"\n',
            "database.url: has sslmode= in it; set database.tls",
        ),
        (
            '[database]\nurl = "postgresql://r@h/x?sslrootcert=a.pem"\n',
            "database.url: has sslrootcert= in it; set database.root_certificate_file",
        ),
        (
            '[database]\nurl = "postgresql://r@h/x?options=a"\n',
            "database.url: has options= in it; allowed after the question mark: host",
        ),
        (
            '[database]\nurl = "postgresql://r@h:1,:2/x"\n',
            "database.url: must be sqlite, or postgre",
        ),
        (
            '[database]\nurl = "postgresql://u@h/r"\nroot_certificate_file = "a.pem"\n',
            "database.root_certificate_file: is for database.tls = verify-ca or",
        ),
        (
            '[database]\ntls = "on"\n',
            "database.tls: 'on': must be one of disable, prefer, require, verify-ca,",
        ),
        ('[redis]\nurl = "http://h/0"\n', "redis.url: must be redis://host:port/0"),
        ('[redis]\npassword_file = "p"\n', "redis.password_file: is for redis.url;"),
        (
            '[database]\npassword_file = "p"\n',
            "database.password_file: database.url is SQLite, which has none; remove it",
        ),
        (
            '[profile]\ntsa = ["x"]\n',
            "profile.tsa: x: not in timestamps.outside; known",
        ),
    ],
)
def test_fault_has_one_line_that_says_what_is_allowed(
    tmp_path: Path, more: str, said: str
) -> None:
    """Key, value, remedy; no words of a library."""
    (line,) = told(tmp_path, GOOD + more)

    assert line.startswith(said)


@pytest.mark.parametrize(
    "more",
    [
        '[database]\nurl = "postgresql://ana:s3cr3t@h:5432/x"\n',
        '[database]\nurl = "postgresql://h/x?user=ana&password=s3cr3t"\n',
        '[redis]\nurl = "redis://:s3cr3t@h:6379/0"\n',
        '[redis]\nurl = "rediss://ana:s3cr3t@h:6379/0"\n',
        '[timestamps]\nproxy = "http://ana:s3cr3t@h:3128"\n',
        '[[timestamps.outside]]\nurl = "https://ana:s3cr3t@h/"\n',
    ],
)
def test_password_in_an_address_is_refused_and_not_shown(
    tmp_path: Path, more: str
) -> None:
    """The settings are read by all."""
    (line,) = told(tmp_path, GOOD + more)

    assert "s3cr3t" not in line
    if more.startswith(("[database]", "[redis]")):
        table = more[1:].partition("]")[0]
        assert line == (
            f"{table}.url: has a password in it; put it alone into the file of "
            f"{table}.password_file"
        )


@pytest.mark.parametrize(
    "url", ["redis://h:6379/0", "rediss://h:6379/0", "unix:///run/redis/redis.sock"]
)
def test_server_of_others_is_reached_as_it_likes(tmp_path: Path, url: str) -> None:
    """By TCP, TLS or a socket of the machine."""
    settings = load(tmp_path, f'{GOOD}[redis]\nurl = "{url}"\n')

    assert settings.redis.url == url


def test_secret_in_the_place_of_a_path_is_not_shown(tmp_path: Path) -> None:
    """A number is no path; which one it was is nobody's business."""
    (line,) = told(tmp_path, GOOD.replace('"secrets/firma.pin"', "73912846"))

    assert line == "hsm.firma.pin_file: must be a path"


def test_run_dir_too_long_is_told_once(tmp_path: Path) -> None:
    """Both sockets would lie there: one key is to be mended."""
    (line,) = told(tmp_path, GOOD.replace("/run/rubrica", LONG))

    assert line.startswith(f"run_dir: too long for the socket {LONG}/")


def test_production_refuses_what_is_for_trials(tmp_path: Path) -> None:
    """SQLite, addresses without TLS, PINs in the environment: all at once."""
    text = f'environment = "PROD"\ntrial = true\n{GOOD}'.replace(
        'label = "pki"', 'label = "pki"\npin_source = "environment"'
    )

    keys = [line.partition(": ")[0] for line in told(tmp_path, text)]

    assert keys == [
        "trial",
        "web.trusted_proxies",
        "database.url",
        "web.base_url",
        "web.iframe_url",
        "hsm.pki.pin_source",
    ]


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("http://consola.firma.example", True),
        ("https://consola.firma.example", False),
        ("http://127.0.0.1:8082", False),
        ("http://127.0.0.1.firma.example", True),
    ],
)
def test_console_of_production_has_tls_or_stays_inside(
    tmp_path: Path, url: str, refused: bool
) -> None:
    """A tunnel to the machine itself needs no certificate."""
    text = PROD.replace("[web]", f'[web]\nadmin_url = "{url}"')
    if refused:
        assert told(tmp_path, text) == [f"web.admin_url: {url!r}: PROD needs https://"]
    else:
        assert load(tmp_path, text).web.admin_url == url


def test_faults_of_every_kind_are_told_at_once(tmp_path: Path) -> None:
    """Missing, unknown, out of range, and keys that do not go together."""
    text = GOOD.replace('pepper_file = "secrets/pepper"\n', "").replace(
        'label = "pki"\n', ""
    )
    more = (
        '[web]\nport = 1\nlisten_embed = "127.0.0.1:8080"\n'
        '[signing]\nwait_s = 0\n[profile]\ntsa = ["x"]\n'
    )

    lines = told(tmp_path, text + more)

    assert sorted(line.partition(": ")[0] for line in lines) == [
        "hsm.pki.label",
        "profile.tsa",
        "secrets.pepper_file",
        "signing.wait_s",
        "web.listen_embed",
        "web.port",
    ]
    assert "hsm.pki.label: is missing; set a text" in lines


def test_missing_tables_are_told_key_by_key(tmp_path: Path) -> None:
    """Whoever begins with an empty file learns all that it needs."""
    keys = {line.partition(": ")[0] for line in told(tmp_path, "")}

    assert {"data_dir", "hsm.firma.label", "secrets.lookup_key_file"} <= keys


def test_what_follows_from_a_fault_is_not_told(tmp_path: Path) -> None:
    """One mistake, one line: nothing is said of what stood in its place."""
    (line,) = told(
        tmp_path,
        GOOD + '[[timestamps.outside]]\nurl = "nowhere"\nname = "fuera"\n'
        '[profile]\ntsa = ["fuera"]\n',
    )

    assert line.startswith("timestamps.outside.0.url: ")


@pytest.mark.parametrize(
    ("endpoint", "is_refused"),
    [
        ("http://s3.example", True),
        ("http://10.0.0.5:9000", True),
        ("http://127.0.0.1:9000", False),
        ("https://s3.example", False),
    ],
)
def test_prod_has_no_bucket_in_clear(
    tmp_path: Path, endpoint: str, *, is_refused: bool
) -> None:
    """But on this machine alone; a trial may."""
    bucket = f'{KEYED}endpoint = "{endpoint}"\n'
    assert load(tmp_path, GOOD + bucket).documents.bucket == ("docs", "")

    if not is_refused:
        assert load(tmp_path, PROD + bucket).documents.bucket is not None
        return
    (line,) = told(tmp_path, PROD + bucket)
    assert line == f"documents.endpoint: {endpoint!r}: PROD needs https://"
