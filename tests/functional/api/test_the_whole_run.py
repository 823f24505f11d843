"""What must hold of all that the functional tests did before: it runs last."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx
import pytest
from redis import Redis

from tests.support.appliance.appliance import Appliance
from tests.support.appliance.http_calls import code_of, log_in, problem, sign
from tests.support.appliance.ledger import read_ledger
from tests.support.documents import pdfs
from tests.support.patience import CALL_S

_HEAD: Final = 64
"""Bytes of a document that are looked for where it is encrypted."""


@pytest.fixture(scope="module")
def secrets(appliance: Appliance) -> set[str]:
    """Everything secret that went through the appliance, one more flow included."""
    person = appliance.new_person("Sara Secreta")
    request = appliance.new_request(person, pdfs.one_page())
    with appliance.client() as client:
        login_token = log_in(client, person)
        code = code_of(appliance, person)
        answer = client.post(
            "/auth/otp", json={"loginToken": login_token, "codigo": code}
        )
        token = answer.json()["access_token"]
        client.headers["Authorization"] = f"Bearer {token}"
        typo = "una clave de firma mal escrita"
        problem(
            sign(client, person, request, password=typo), 403, "SIGN_PASSWORD_WRONG"
        )
        url = sign(client, person, request).json()["documentoFirmado"]
        assert httpx.get(url, timeout=CALL_S).status_code == 200
        # What is sent in the wrong place must not turn up either.
        client.post("/auth/login", json={"usuario": typo, "password": typo})
        client.get(f"/solicitudes/{typo}")
        client.get(f"/nada?clave={token}")
    clave = url.partition("clave=")[2]
    files = [path.read_text().strip() for path in _secret_files(appliance)]
    return {*appliance.secrets, *files, token, login_token, clave, typo}


def _secret_files(appliance: Appliance) -> list[Path]:
    return [path for path in (appliance.folder / "secrets").iterdir() if path.is_file()]


def _found(secrets: set[str], content: bytes) -> list[str]:
    return [
        secret
        for secret in secrets
        if secret.encode() in content or secret.encode().hex().encode() in content
    ]


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else b""


def test_no_secret_in_the_log(appliance: Appliance, secrets: set[str]) -> None:
    """No password, seed, token, link, PIN or key file, not even in a typing error."""
    log = appliance.log.read_bytes()

    assert b"/solicitudes/firmar" in log
    assert _found(secrets, log) == []


def test_no_secret_in_redis(appliance: Appliance, secrets: set[str]) -> None:
    """Nor in anything that Redis holds, or wrote to a file."""
    socket = str(appliance.settings.redis_socket)
    with contextlib.closing(Redis(unix_socket_path=socket)) as redis:
        assert redis.ping()
        keys = [bytes(key) for key in redis.scan_iter(count=1000)]
        dump = b"".join([*keys, *(_bytes(redis.dump(key)) for key in keys)])
    for path in (appliance.folder / "redis").rglob("*"):
        dump += path.read_bytes()

    assert _found(secrets, dump) == []
    assert b"%PDF" not in dump


def test_no_secret_in_the_database(appliance: Appliance, secrets: set[str]) -> None:
    """Nor in the record, its journal included: hashed, sealed, or not there."""
    files = [path for path in appliance.folder.glob("rubrica.db*") if path.is_file()]
    content = b"".join(path.read_bytes() for path in files)

    assert len(content) > 100_000
    assert _found(secrets, content) == []


def test_no_secret_in_a_stored_document(
    appliance: Appliance, secrets: set[str]
) -> None:
    """Nor beside or inside the documents, none of which is there in clear."""
    ledger = read_ledger(appliance)
    for path in (appliance.folder / "documents").rglob("*.pdf"):
        opened = ledger.read(path.parent.parent.name, path.stem)
        assert opened is not None
        assert _found(secrets, opened) == []
        # Not `%PDF` alone: four bytes come up by chance in so much ciphertext.
        assert opened[:_HEAD] not in path.read_bytes()


def _logs(*appliances: Appliance) -> Iterator[str]:
    for appliance in appliances:
        yield from appliance.log.read_text("utf-8", "replace").splitlines()


def test_nothing_was_a_500(appliance: Appliance, limited_appliance: Appliance) -> None:
    """No input of the whole run was answered by 500, and no role fell over.

    Source: decisions "errors".
    """
    lines = list(_logs(appliance, limited_appliance))

    answered = [line for line in lines if re.search(r"\bstatus=\d{3}\b", line)]
    assert answered
    assert [line for line in lines if re.search(r"\bstatus=50[02]\b", line)] == []
    for word in ("unknown_error", "Traceback", "role.ended", "role.failed"):
        assert [line for line in lines if word in line] == []


def test_audit_explains_the_whole_run(appliance: Appliance) -> None:
    """All that tests did honestly: no chain is broken, and nothing is unexplained."""
    done = appliance.rubrica("audit", "verify")

    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("all explained\n")
