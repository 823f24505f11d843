"""API keys for some uses and some networks, over HTTP and behind a proxy."""

import re
from collections.abc import Iterator

import httpx
import pytest

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import problem
from tests.support.installation.installation import Installation
from tests.support.processes.scratch import short_folder

NEW = "/api/integration/session/new"
HERE, SIX, ELSEWHERE = "192.0.2.7", "2001:db8::7", "198.51.100.1"


@pytest.fixture(scope="module")
def proxied() -> Iterator[Appliance]:
    """An appliance that takes this machine's word on who calls."""
    with (
        short_folder() as folder,
        Installation(folder, web={"trusted_proxies": ["127.0.0.1"]}).whole() as made,
    ):
        yield made


def make_key(appliance: Appliance, label: str, *wishes: str) -> tuple[str, str]:
    """A key that the command makes: its id, and the key."""
    run = appliance.rubrica("integrator", "key", "create", "demo", label, *wishes)
    match = re.search(r"key (\w{12}); .*\n(rbk_test_\w+)", run.stdout)
    assert match is not None, run.stderr
    return match[1], match[2]


def listed(appliance: Appliance, key_id: str) -> list[str]:
    """Scopes and networks of a key in the list of them."""
    text = appliance.rubrica("integrator", "key", "list", "demo").stdout
    (line,) = [line for line in text.splitlines() if line.startswith(key_id)]
    return re.split(r"  +", line)[-2:]


def call(appliance: Appliance, key: str, *hops: str) -> httpx.Response:
    """Ask for a session as who is named by a proxy, by the last of its words."""
    with appliance.client() as client:
        return client.post(
            f"{NEW}?id=demo",
            headers={"X-Api-Key": key, "X-Forwarded-For": ", ".join(hops)},
        )


@pytest.fixture(scope="module")
def bound(proxied: Appliance) -> tuple[str, str]:
    """A key for one network and one address."""
    wishes = ("--network", "192.0.2.0/24", "--network", SIX)
    return make_key(proxied, "con redes", *wishes)


@pytest.mark.parametrize("address", [HERE, "192.0.2.255", SIX, "[2001:db8::7]:4711"])
def test_key_works_from_its_networks(
    proxied: Appliance, bound: tuple[str, str], address: str
) -> None:
    """As the nearest proxy names the caller."""
    assert call(proxied, bound[1], address).status_code == 200


@pytest.mark.parametrize(
    ("hops", "told"),
    [
        ((ELSEWHERE,), ELSEWHERE),
        ((HERE, ELSEWHERE), ELSEWHERE),
        (("2001:db8::8",), "2001:db8::8"),
        (("nobody",), "127.0.0.1"),
    ],
)
def test_key_is_refused_from_elsewhere(
    proxied: Appliance, bound: tuple[str, str], hops: tuple[str, ...], told: str
) -> None:
    """What a caller says of itself counts for nothing; the log names the key."""
    key_id, secret = bound

    answer = problem(call(proxied, secret, *hops), 403, "API_KEY_ADDRESS")

    assert answer["category"] == "fix_request"
    assert answer["detail"] == (
        f"Esta clave de API no se puede usar desde {told}; llamá desde una dirección "
        "que admita o creá una clave que admita esta."
    )
    assert "192.0.2.0" not in str(answer)
    line = [
        line
        for line in proxied.log.read_text().splitlines()
        if "api_key.elsewhere" in line
    ][-1]
    assert key_id in line
    assert f"address={told}" in line
    assert secret not in proxied.log.read_text()


def test_key_opens_no_session_without_the_scope(proxied: Appliance) -> None:
    """And the one that may do everything does."""
    _, reader = make_key(proxied, "lee", "--scope", "requests:read")
    _, whole = make_key(proxied, "todo", "--scope", "all")

    told = problem(call(proxied, reader, HERE), 403, "API_KEY_SCOPE")

    assert "sessions:write" in str(told["detail"])
    assert call(proxied, whole, HERE).status_code == 200


def test_list_shows_what_keys_may_do(proxied: Appliance) -> None:
    """Also of a successor, which may do the same."""
    plain, _ = make_key(proxied, "simple")
    wishes = ("--scope", "requests:write", "--scope", "requests:read")
    some, _ = make_key(proxied, "dos", *wishes, "--network", "10.0.0.0/8")
    whole, _ = make_key(proxied, "todo", "--scope", "requests:read", "--scope", "all")

    rotated = proxied.rubrica("integrator", "key", "rotate", some).stdout

    successor = rotated.partition(";")[0].removeprefix("key ")
    assert listed(proxied, plain) == ["sessions:write", "anywhere"]
    for key_id in (some, successor):
        told = listed(proxied, key_id)
        assert told == ["requests:read, requests:write", "10.0.0.0/8"]
    assert listed(proxied, whole) == ["all", "anywhere"]


@pytest.mark.parametrize(
    ("wish", "told"),
    [
        (("--network", "10.0.0.1/8"), "write 10.0.0.0/8 for the whole network"),
        (("--network", "10.0.0"), "10.0.0 is neither an IP address nor a network"),
        (("--scope", "stars:write"), "invalid choice"),
    ],
)
def test_command_says_what_is_wrong(
    proxied: Appliance, wish: tuple[str, str], told: str
) -> None:
    """And makes no key."""
    run = proxied.rubrica("integrator", "key", "create", "demo", "mala", *wish)

    assert run.returncode != 0
    assert told in run.stderr
    assert "mala" not in proxied.rubrica("integrator", "key", "list", "demo").stdout


def test_trial_has_a_key_of_everything(proxied: Appliance) -> None:
    """One of an earlier version, which opens sessions alone, is replaced once."""
    env = proxied.settings.data_dir / "demo.env"
    kept = proxied.settings.data_dir / "demo-api-key"
    _, narrow = make_key(proxied, "de antes")
    kept.write_text(f"{narrow}\n")

    told = []
    for _ in range(2):
        assert proxied.rubrica("demo", "setup").returncode == 0
        told.append(kept.read_text().strip())

    assert told[0] == told[1] != narrow
    assert listed(proxied, told[0].split("_")[2]) == ["all", "anywhere"]
    assert f"API_KEY='{told[0]}'" in env.read_text()
    assert f"WEB_URL='{proxied.settings.web.web_url}'" in env.read_text()
