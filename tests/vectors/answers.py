"""Answers of the faces, made comparable: what is random has a name in its place."""

import base64
import binascii
import json
import re
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

_RANDOM: Final = re.compile(
    r"(?P<jwt>eyJ[\w-]+\.[\w-]+\.[\w-]{20,})"
    r"|(?P<key>rbk_(?:test|live)_[0-9a-z]{12}_\w{49})"
    r"|(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<bearer>\b[0-9a-f]{24}\.[\w-]{43}(?![\w-]))"
    r"|(?P<secret>(?<![\w-])[\w-]{43}(?![\w-]))"
    r"|(?P<id>\b[0-9a-f]{24}\b)"
    r"|(?P<phc>(?<=\$)[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}(?![A-Za-z0-9+/]))"
    r"|(?P<code>\b[0-9A-HJKMNP-TV-Z]{26}\b)"
    r"|(?P<hint>rbk_test_…\w{4})"
    r"|(?P<hash>\b[0-9a-f]{64}\b)"
    r"|(?P<batch>(?<=/lotes/)[0-9a-f]{32}\b|(?<=\")[0-9a-f]{32}(?=\"))"
)
_NOT_OURS: Final = frozenset({"sqlite_sequence", "alembic_version"})
_SHORT: Final = 16
"""Bytes of a blob that tests put there themselves."""
_DER: Final = frozenset({"certificate", "chain", "der"})
"""Columns of certificates, whose length a random serial number changes."""
_ECDSA: Final = range(67, 73)
"""Bytes that one on P-256 has, in DER."""
_LEFT_OUT: Final = frozenset({"date", "content-length", "server"})


class Randoms:
    """Names of random words, by their kind and the order in which they come."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._known: dict[str, str] = {}

    def know(self, word: str, name: str) -> None:
        """Have a random word that looks like any other be told by a name.

        Args:
            word: as it comes.
            name: of it.
        """
        self._known[word] = f"<{name}>"

    def named(self, text: str) -> str:
        """A text, its random words by name; the same word has one name."""
        for word, name in self._known.items():
            text = text.replace(word, name)
        return _RANDOM.sub(self._name, text)

    def _name(self, found: re.Match[str]) -> str:
        kind = str(found.lastgroup)
        if kind not in self._names:
            self._names[kind] = "0"
        if found[0] not in self._names:
            number = int(self._names[kind]) + 1
            self._names[kind] = str(number)
            self._names[found[0]] = f"<{kind} {number}>"
        return self._names[found[0]]


async def told(answer: Any, randoms: Randoms) -> dict[str, Any]:
    """Status, headers and body of an answer."""
    content: bytes = await answer.get_data(as_text=False)
    kind = answer.headers.get("Content-Type", "")
    return {
        "status": answer.status_code,
        "headers": {
            name.lower(): randoms.named(value)
            for name, value in sorted(answer.headers.items())
            if name.lower() not in _LEFT_OUT
        },
        "body": _body(content, kind, randoms),
    }


def _body(content: bytes, kind: str, randoms: Randoms) -> Any:
    if "json" in kind:
        # The order of an object's members is kept.
        text = randoms.named(content.decode())
        return {"text": text} if not text.strip() else json.loads(text)
    if kind.startswith("text/html"):
        return "a page"
    return {"base64": base64.b64encode(content).decode()}


def factored(answers: Mapping[str, Any]) -> dict[str, Any]:
    """Answers, the headers that each of them has said once.

    Args:
        answers: by name; what has no headers is left as it is.
    """
    heads = [set(one["headers"].items()) for one in answers.values() if _is_one(one)]
    shared = set.intersection(*heads) if heads else set()
    told: dict[str, Any] = {"every answer": dict(sorted(shared))} if shared else {}
    for name, one in answers.items():
        if _is_one(one):
            own = [item for item in one["headers"].items() if item not in shared]
            told[name] = {**one, "headers": dict(own)}
        else:
            told[name] = one
    return told


def _is_one(answer: Any) -> bool:
    return isinstance(answer, dict) and "headers" in answer


def recorded(folder: Path, randoms: Randoms) -> dict[str, Any]:
    """All rows of a record on SQLite, table by table, as they were written.

    Blobs are told by their length, the audit's own hashes by name as all are.

    Args:
        folder: the data folder of the installation.
        randoms: names of the words that were told before.
    """
    (file,) = folder.glob("*.db")
    tables: dict[str, Any] = {}
    with closing(sqlite3.connect(file)) as database:
        names = database.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
        ).fetchall()
        for (table,) in names:
            found = database.execute(f'SELECT * FROM "{table}"')  # noqa: S608 (our own)
            columns = [column[0] for column in found.description]
            rows = [
                {
                    name: "DER" if name in _DER else _cell(value, randoms)
                    for name, value in zip(columns, row, strict=True)
                    if value is not None
                }
                for row in found
            ]
            if rows and table not in _NOT_OURS:
                tables[table] = rows
    return tables


def _cell(value: Any, randoms: Randoms) -> Any:
    if isinstance(value, bytes) and len(value) in _ECDSA:
        return "a signature on P-256"
    if isinstance(value, bytes):
        return f"{len(value)} bytes" if len(value) > _SHORT else value.hex()
    return randoms.named(value) if isinstance(value, str) else value


def token_parts(token: str) -> list[dict[str, Any]]:
    """Header and claims of an access token, random words by name."""
    header, claims, _ = token.split(".")
    return [_part(header), _part(claims)]


def _part(encoded: str) -> dict[str, Any]:
    padded = encoded + "=" * (-len(encoded) % 4)
    try:
        part: Mapping[str, Any] = json.loads(base64.urlsafe_b64decode(padded))
    except (binascii.Error, ValueError) as exc:
        raise AssertionError(encoded) from exc
    randoms = Randoms()
    return dict(json.loads(randoms.named(json.dumps(part))))
