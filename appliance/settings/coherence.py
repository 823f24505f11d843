"""What the keys of one file must not be together: certain from the file alone.

    for key, text in contradictions(settings): ...

What needs a look at the machine (files, their modes) is `check-config`'s matter.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from appliance.domain.appearance.details import CODE_LENGTH, CONTENT_AT_MOST
from appliance.domain.vocab import Environment
from appliance.settings.web import FACES, METRICS, origin_of

if TYPE_CHECKING:
    from appliance.settings.documents import DocumentSettings
    from appliance.settings.root import Settings

Fault: TypeAlias = tuple[str, str]
"""A key by its full name, and what is wrong with it and what it may be."""


class ContradictionError(ValueError):
    """Keys that are good each by itself and not together."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("\n".join(f"{key}: {text}" for key, text in faults))
        self.faults = faults


SOCKET_BYTES: Final = 107
"""Longest path of a Unix socket. Source: unix(7), `sun_path`."""
_THIS_MACHINE: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "[::]", "::", ""})  # noqa: S104 (told apart, not bound)
_LISTENERS: Final = {face: f"web.listen_{face}" for face in FACES} | {
    METRICS: "metrics.listen"
}
"""Roles that listen, each with the key that says where."""
_KEY_OF_A_BUCKET: Final = ("access_key_file", "secret_key_file")
_OF_A_BUCKET: Final = ("endpoint", *_KEY_OF_A_BUCKET, "root_certificate_file")
"""Keys of `[documents]` that are for `url` alone."""
_SQLITE: Final = "database.url is SQLite, which has none"
"""It names the key that may be wrong itself: this is not told beside that."""
_LOOPBACK: Final = ("http://127.0.0.1", "http://localhost", "http://[::1]")


def contradictions(settings: "Settings") -> Iterator[Fault]:
    """Every fault of keys that are good each by itself.

    Args:
        settings: of the file.
    """
    yield from _of_signatures(settings)
    yield from _of_listeners(settings)
    yield from _of_sockets(settings)
    if _origin(settings.web.admin_url) in {
        _origin(settings.web.base_url),
        _origin(settings.web.web_url),
    }:
        yield (
            "web.admin_url",
            (
                "must be an origin of its own: another host or port than web.base_url "
                "and web.web_url have"
            ),
        )
    yield from _of_stores(settings)
    yield from _of_mail(settings)
    if settings.environment is Environment.PROD:
        yield from _of_production(settings)


def _of_signatures(settings: "Settings") -> Iterator[Fault]:
    names = settings.tsa_names
    unknown = [name for name in settings.profile.tsa if name not in names]
    if unknown:
        told = ", ".join(unknown)
        known = ", ".join(names)
        yield "profile.tsa", f"{told}: not in timestamps.outside; known here: {known}"
    if len(settings.verify_url) + 1 + CODE_LENGTH > CONTENT_AT_MOST:
        yield "stamp.verify_url", "too long for a QR code; choose a shorter address"
    if not settings.verify_url.isascii():
        yield "stamp.verify_url", "its host must be written in ASCII (xn--…)"


def _of_stores(settings: "Settings") -> Iterator[Fault]:
    database, redis = settings.database, settings.redis
    if database.url == "sqlite" and database.password_file is not None:
        yield "database.password_file", f"{_SQLITE}; remove it"
    if database.root_certificate_file is not None and database.url == "sqlite":
        yield "database.root_certificate_file", f"{_SQLITE}; remove it"
    elif database.root_certificate_file is not None and not database.tls.startswith(
        "verify-"
    ):
        yield (
            "database.root_certificate_file",
            "is for database.tls = verify-ca or verify-full; set that, or remove this",
        )
    if redis.password_file is not None and redis.url is None:
        yield "redis.password_file", "is for redis.url; set that, or remove this"
    if redis.root_certificate_file is not None and not (redis.url or "").startswith(
        "rediss:"
    ):
        yield "redis.root_certificate_file", "is for a redis.url with rediss://"
    yield from _of_documents(settings.documents)


def _of_mail(settings: "Settings") -> Iterator[Fault]:
    mail = settings.mail
    if not mail.is_on:
        for key in ("user", "password_file", "from_address", "root_certificate_file"):
            if getattr(mail, key) is not None:
                yield f"mail.{key}", "is for mail.host; set that, or remove this"
        return
    if mail.from_address is None:
        yield "mail.from_address", "is missing; mail.host needs it"
    if (mail.user is None) != (mail.password_file is None):
        yield "mail.user", "and mail.password_file go together; set both, or remove one"
    if mail.tls == "none" and mail.root_certificate_file is not None:
        yield "mail.root_certificate_file", "is for mail.tls = starttls or implicit"
    if (
        mail.tls == "none"
        and settings.environment is Environment.PROD
        and mail.host not in _THIS_MACHINE
    ):
        yield (
            "mail.tls",
            "none is for a server on this machine; PROD needs starttls or implicit",
        )


def _of_documents(documents: "DocumentSettings") -> Iterator[Fault]:
    """A folder, or a bucket and the key to it."""
    if documents.url is None:
        for key in _OF_A_BUCKET:
            if getattr(documents, key) is not None:
                yield f"documents.{key}", "is for documents.url; set that, or remove it"
        return
    if documents.path is not None:
        yield "documents.path", "documents are in documents.url; remove one of the two"
    for key in _KEY_OF_A_BUCKET:
        if getattr(documents, key) is None:
            yield f"documents.{key}", "is missing; documents.url needs it"
    if documents.root_certificate_file is not None and (
        documents.endpoint or ""
    ).startswith("http:"):
        yield (
            "documents.root_certificate_file",
            "is for a documents.endpoint with https://",
        )


def _of_listeners(settings: "Settings") -> Iterator[Fault]:
    """Two roles at one port or one socket: the second would not start."""
    taken: list[tuple[str, str]] = []
    for role, key in _LISTENERS.items():
        address = settings.listen(role)
        if not address:
            continue
        for other, there in taken:
            if _meet(address, there):
                yield key, f"{address!r}: {other} listens there; choose another port"
                break
        taken.append((key, address))


def _meet(one: str, other: str) -> bool:
    """Whether two listeners would be at one place."""
    if one.startswith("unix:") or other.startswith("unix:"):
        return one == other
    (host, _, port), (there, _, taken) = one.rpartition(":"), other.rpartition(":")
    if int(port) != int(taken):
        return False
    hosts = {
        host.replace("localhost", "127.0.0.1"),
        there.replace("localhost", "127.0.0.1"),
    }
    return len(hosts) == 1 or bool(hosts & _EVERY_ADDRESS)


def _of_sockets(settings: "Settings") -> Iterator[Fault]:
    """Unix sockets: each with a path of its own, and none too long."""
    places = [("sandbox.socket", settings.sandbox.socket, settings.sandbox_socket)]
    if settings.redis.url is None:
        places.append(("redis.socket", settings.redis.socket, settings.redis_socket))
    told: set[str] = set()
    taken: dict[str, str] = {}
    for role, key in _LISTENERS.items():
        kind, _, path = settings.listen(role).partition(":")
        if kind == "unix":
            taken[path] = key
            if len(os.fsencode(path)) > SOCKET_BYTES:
                yield key, _too_long(path)
    for key, given, there in places:
        text = str(there)
        named = key if given is not None else "run_dir"
        if len(os.fsencode(text)) > SOCKET_BYTES and named not in told:
            told.add(named)
            yield named, _too_long(text)
        if text in taken:
            yield key, f"{text}: {taken[text]} has that socket; choose another path"
        taken[text] = key


def _too_long(path: str) -> str:
    return (
        f"too long for the socket {path} ({len(os.fsencode(path))} bytes of "
        f"{SOCKET_BYTES}); choose a shorter folder"
    )


def _of_production(settings: "Settings") -> Iterator[Fault]:
    """What only a trial may do."""
    web = settings.web
    if settings.trial:
        yield "trial", "a trial cannot be PROD; remove it, or set PREPROD"
    if web.trusted_proxies is None:
        # Behind a proxy that is not named every client has the proxy's address,
        # and the wrong tries of one lock out all.
        yield (
            "web.trusted_proxies",
            (
                "PROD needs the networks of the proxies before it, or [] where there "
                "is none"
            ),
        )
    if settings.database.url == "sqlite":
        yield (
            "database.url",
            "SQLite is for trials; PROD needs postgresql://user@host:port/name",
        )
    endpoint = settings.documents.endpoint or ""
    for key, url, runs in (
        ("documents.endpoint", endpoint, not _is_loopback(endpoint)),
        ("web.base_url", web.base_url, True),
        ("web.web_url", web.web_url, web.web_url != web.base_url),
        ("web.iframe_url", web.iframe_url, bool(web.listen_embed)),
        # Browsers take a machine's own loopback for safe: a console that is
        # reached by a tunnel alone has no certificate.
        (
            "web.admin_url",
            web.admin_url,
            bool(web.listen_admin) and not _is_loopback(web.admin_url),
        ),
    ):
        if runs and url.startswith("http:"):
            yield key, f"{url!r}: PROD needs https://"
    tokens = [("hsm.firma", settings.hsm.firma), ("hsm.pki", settings.hsm.pki)]
    tokens += [
        (f"hsm.replicas.{at}", each) for at, each in enumerate(settings.hsm.replicas)
    ]
    for name, token in tokens:
        if token.pin_source == "environment":
            yield (
                f"{name}.pin_source",
                "PROD takes no PIN from the environment; set file or credential",
            )


def _is_loopback(url: str) -> bool:
    origin = origin_of(url)
    return any(origin == one or origin.startswith(f"{one}:") for one in _LOOPBACK)


def _origin(url: str) -> str:
    """The origin, with the port that its scheme stands for left out."""
    origin = origin_of(url).lower()
    scheme = origin.partition(":")[0]
    return origin.removesuffix({"http": ":80", "https": ":443"}[scheme])
