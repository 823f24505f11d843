"""The product as vectors see it that need a real part: HSM, Redis, age.

Each `make_…` gives what is kept, each `use_…` what is read of it; both need a folder
of their own. As `tests.vectors.adapters`, imports here move with the code.
"""

import asyncio
import base64
import hashlib
import json
import subprocess
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

import pkcs11
from pkcs11 import Attribute, KeyType, ObjectClass
from redis import Redis

from appliance.bootstrap import open_core
from appliance.domain.clock import SystemClock
from appliance.domain.ids import ActivationId
from appliance.domain.keys.hsm_keys import (
    DigestAlgorithm,
    KeyAlgorithm,
    TokenRole,
    WrapMethod,
    WrappedKey,
    scheme_for,
)
from appliance.messaging.redis_link import (
    RedisCompletionNotifier,
    RedisWorkNotifier,
    deserialize,
)
from appliance.messaging.redis_link import redis_settings as settings_of
from appliance.operations.backup.archive import reading, writing
from appliance.settings import RedisSettings, Settings
from hsm_config.pkcs11 import key_pairs, signatures, templates
from hsm_config.pkcs11.master_keys import label_of
from tests.support.hsm.hsm_installation import HsmInstallation, until
from tests.support.installation.settings import settings_in
from tests.support.processes.scratch import short_folder
from tests.support.services.redis import RedisServer
from tests.vectors.adapters import raw
from tests.vectors.kept import Given
from worker.work_notifications import hear_notifications

# -- wrapped keys --------------------------------------------------------------

_MASTERS: Final = {7: "4d" * 32, 8: "4e" * 32}
"""Master keys by version; that they are known is what makes vectors of wrapping."""
_DIGEST: Final = hashlib.sha256(b"what is signed").digest()


def _hsm(folder: Path) -> HsmInstallation:
    """An installation whose firma token has the known master keys."""
    made = HsmInstallation.ready(folder)
    with made.raw(TokenRole.FIRMA) as session:
        for version, key in _MASTERS.items():
            label = label_of(version)
            _import(session, label, raw(key))
    return made


def _import(session: pkcs11.Session, label: str, value: bytes) -> None:
    session.create_object(
        {
            Attribute.CLASS: ObjectClass.SECRET_KEY,
            Attribute.KEY_TYPE: KeyType.AES,
            Attribute.TOKEN: True,
            Attribute.ID: label.encode(),
            Attribute.LABEL: label,
            Attribute.VALUE: value,
            **templates.MASTER,
        }
    )


async def make_wrapped_keys(folder: Path) -> dict[str, Any]:
    """Pairs as an enrolment makes them, under the newest of the master keys."""
    keys: dict[str, Any] = {}
    async with _hsm(folder).session() as session:
        for algorithm in (KeyAlgorithm.RSA_2048, KeyAlgorithm.EC_P256):
            key = await session.generate_wrapped(algorithm)
            keys[algorithm.value] = {
                "spki": key.spki.hex(),
                "master": key.master,
                "blob_w": key.blob_w.hex(),
                "method_w": key.method_w.value,
                "blob_k": key.blob_k.hex(),
                "method_k": key.method_k.value,
            }
    return {"masters": {str(n): key for n, key in _MASTERS.items()}, "keys": keys}


async def use_wrapped_keys(folder: Path, kept: Given) -> dict[str, Any]:
    """What they sign, and what rewrapping makes of them, where that is determined."""
    told: dict[str, Any] = {}
    async with _hsm(folder).session() as session:
        for name, each in kept["keys"].items():
            algorithm = KeyAlgorithm(name)
            key = WrappedKey(
                algorithm=algorithm,
                spki=raw(each["spki"]),
                master=each["master"],
                blob_w=raw(each["blob_w"]),
                method_w=WrapMethod(each["method_w"]),
                blob_k=raw(each["blob_k"]),
                method_k=WrapMethod(each["method_k"]),
            )
            told[name] = await _used(session, key)
    return told


async def _used(session: Any, key: WrappedKey) -> dict[str, Any]:
    scheme = scheme_for(key.algorithm)
    public = key_pairs.load_spki(key.spki)
    signature = await session.sign(key, _DIGEST, scheme)
    signatures.verify(public, signature, _DIGEST, scheme, DigestAlgorithm.SHA256)
    blob, method = await session.rewrap(key.blob_w, key.method_w, 8, 7)
    moved = replace(key, master=7, blob_w=blob, method_w=method)
    again = await session.sign(moved, _DIGEST, scheme)
    signatures.verify(public, again, _DIGEST, scheme, DigestAlgorithm.SHA256)
    return {
        # PKCS#1 v1.5 is determined, ECDSA is not.
        "signature": None if key.algorithm.is_ec else signature.hex(),
        "rewrapped": blob.hex(),
        "method": method.value,
    }


# -- Redis ---------------------------------------------------------------------

_PATIENCE_S: Final = 30.0
_ACTIVATION: Final = ActivationId("11111111-1111-4111-8111-111111111111")


async def make_redis(folder: Path) -> dict[str, Any]:
    """What a front writes to Redis and says on its channels."""
    with short_folder() as short:
        server = RedisServer(short)
        server.start()
        try:
            return await _notified(server, folder)
        finally:
            server.kill()


def _settings(server: RedisServer, folder: Path) -> Settings:
    redis = RedisSettings(socket=server.socket)
    return settings_in(folder).model_copy(update={"redis": redis})


async def _notified(server: RedisServer, folder: Path) -> dict[str, Any]:
    settings = _settings(server, folder)
    notifier = RedisWorkNotifier(settings_of(settings))
    completion_notifier = RedisCompletionNotifier(settings_of(settings))
    with closing(Redis(unix_socket_path=str(server.socket))) as client:
        heard = client.pubsub()  # type: ignore[no-untyped-call]
        heard.psubscribe("*")
        heard.get_message(timeout=5)
        await notifier.notify(_ACTIVATION)
        await completion_notifier.publish(_ACTIVATION)
        said = []
        while (message := heard.get_message(timeout=1)) is not None:
            said.append([message["channel"].decode(), message["data"].decode()])
        heard.close()
        names = cast("list[bytes]", client.keys("*"))
        keys = {key.decode(): _value(client, key) for key in names}
    await notifier.close()
    await completion_notifier.close()
    return {"keys": dict(sorted(keys.items())), "said": said}


def _value(client: Any, key: bytes) -> Any:
    """A key's value, its times left out."""
    if client.type(key) == b"zset":
        return [member.decode() for member in client.zrange(key, 0, -1)]
    job = deserialize(client.get(key))
    order = list(job)
    job["et"] = "milliseconds" if isinstance(job["et"], int) else job["et"]
    return {name: job[name] for name in order} | {"expires": client.pttl(key) > 0}


async def use_redis(folder: Path, kept: Given) -> dict[str, Any]:
    """Whether a worker takes the job that an earlier front left."""
    wake = asyncio.Event()
    with short_folder() as short:
        server = RedisServer(short)
        server.start()
        try:
            _leave_job(server, kept["keys"])
            async with open_core(
                _settings(server, folder), SystemClock(), "test"
            ) as it:
                hearing = asyncio.create_task(
                    hear_notifications(it.work_channel, wake, lambda: True)
                )
                async with asyncio.timeout(_PATIENCE_S):
                    await wake.wait()
                # The job goes once it is done, a moment after it has woken.
                await until(lambda: not server.command("KEYS", "arq:job:*"))
                hearing.cancel()
                await asyncio.gather(hearing, return_exceptions=True)
        finally:
            server.kill()
    return {"woken": wake.is_set()}


def _leave_job(server: RedisServer, keys: Mapping[str, Any]) -> None:
    """Write a job as it was found, its time now; nothing is said on the channel."""
    (job, queue) = sorted(keys, key=lambda key: not key.startswith("arq:job:"))
    now_ms = time.time_ns() // 1_000_000
    content = {k: v for k, v in keys[job].items() if k != "expires"} | {"et": now_ms}
    server.command("SET", job, json.dumps(content), "PX", 120_000)
    server.command("ZADD", queue, now_ms, keys[queue][0])


# -- backups -------------------------------------------------------------------

_MEMBERS: Final = {
    "about.json": b'{"kind": "record"}',
    "documents/a.pdf": b"%PDF-1.7\n",
    "empty": b"",
}


async def make_archive(folder: Path) -> dict[str, Any]:
    """A backup's archive, and the key that opens it."""
    identity = folder / "identity"
    await asyncio.to_thread(
        subprocess.run,
        ["age-keygen", "-o", str(identity)],
        check=True,
        capture_output=True,
    )
    lines = identity.read_text("utf-8").splitlines()
    path = folder / "archive"
    recipient = lines[1].rpartition(" ")[2]
    with writing(path, ["--recipient", recipient]) as archive:
        for name, content in _MEMBERS.items():
            archive.add_bytes(name, content)
        told = archive.tally.told()
    return {
        "identity": lines[-1],
        "archive": base64.b64encode(path.read_bytes()).decode(),
        "contents": told,
    }


async def use_archive(folder: Path, kept: Given) -> dict[str, Any]:
    """What is in an archive; and the tar that one of the same members has now."""
    (folder / "kept").write_bytes(base64.b64decode(kept["archive"]))
    (folder / "key").write_text(kept["identity"] + "\n", "ascii")
    (folder / "key").chmod(0o600)
    members = {
        name: [size, content.read().hex()]
        for name, size, content in reading(folder / "kept", folder / "key")
    }
    (folder / "now").mkdir()
    now = await make_archive(folder / "now")
    tars = [_tar(folder / "kept", folder / "key")]
    tars.append(_tar(folder / "now/archive", folder / "now/identity"))
    assert tars[0] == tars[1]
    return {"members": members, "contents": now["contents"], "tar": tars[0]}


def _tar(archive: Path, identity: Path) -> str:
    """SHA-256 of the tar in an archive."""
    opened = subprocess.run(
        ["age", "--decrypt", "--identity", str(identity), str(archive)],
        check=True,
        capture_output=True,
    )
    return hashlib.sha256(opened.stdout).hexdigest()


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is kept, and how it is used again."""

    says: str
    make: Callable[[Path], Coroutine[Any, Any, dict[str, Any]]]
    use: Callable[[Path, Given], Coroutine[Any, Any, dict[str, Any]]]


PARTS: Final[Mapping[str, Part]] = {
    "backup-archive": Part(
        "Tar of a backup, encrypted with age; `used`: its members, and SHA-256 of the "
        "tar.",
        make_archive,
        use_archive,
    ),
    "redis-job": Part(
        "Keys and messages of a ring and of news; arq's own among them.",
        make_redis,
        use_redis,
    ),
    "wrapped-keys": Part(
        "credential.blob_w and what `outer` holds, under known master keys; `used`: "
        "signature (PKCS#1 v1.5) and W under master key 7.",
        make_wrapped_keys,
        use_wrapped_keys,
    ),
}
"""By the name of the file."""
