"""Answers of the faces, made comparable: what is random has a name in its place."""

import base64
import binascii
import json
import re
from collections.abc import Mapping
from typing import Any, Final

_RANDOM: Final = re.compile(
    r"(?P<jwt>eyJ[\w-]+\.[\w-]+\.[\w-]{20,})"
    r"|(?P<key>rbk_(?:test|live)_[0-9a-z]{12}_\w{49})"
    r"|(?P<uuid>\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)"
    r"|(?P<bearer>\b[0-9a-f]{24}\.[\w-]{43}(?![\w-]))"
    r"|(?P<secret>(?<![\w-])[\w-]{43}(?![\w-]))"
    r"|(?P<id>\b[0-9a-f]{24}\b)"
    r"|(?P<batch>(?<=/lotes/)[0-9a-f]{32}\b|(?<=\")[0-9a-f]{32}(?=\"))"
)
_LEFT_OUT: Final = frozenset({"date", "content-length", "server"})


class Randoms:
    """Names of random words, by their kind and the order in which they come."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def named(self, text: str) -> str:
        """A text, its random words by name; the same word has one name."""
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
