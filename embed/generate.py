"""Make what others read of the protocol: `python -m embed.generate`.

Writes the page's module `static/protocol.js` and the JSON Schemas in
`static/messages.schema.json`. With `--check` nothing is written and a stale file is
an error.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from embed.fields import Field, Kind, as_data, as_schema
from embed.machine import TABLE
from embed.protocol import (
    LEGACY_FIELD,
    MESSAGES,
    PROTOCOL_VERSION,
    SMALL_MESSAGE,
    Message,
)

_STATIC: Final = Path(__file__).resolve().parent / "static"
_NOTE: Final = "Made by `python -m embed.generate` from embed/protocol.py."


def render_module() -> str:
    """The page's module: constants and, as comments, types."""
    states = {
        row.state.value: {
            "accepts": list(row.accepts),
            "emits": list(row.emits),
            "leads": [state.value for state in row.leads],
        }
        for row in TABLE
    }
    messages = {
        item.name: {
            "direction": item.direction.value,
            "fields": as_data(item.fields),
        }
        for item in MESSAGES
    }
    parts = [
        f"// {_NOTE}",
        *(_typedef(item) for item in MESSAGES),
        f"export const PROTOCOL_VERSION = {PROTOCOL_VERSION};",
        f"export const SMALL_MESSAGE = {SMALL_MESSAGE};",
        f"export const LEGACY_FIELD = {json.dumps(LEGACY_FIELD)};",
        f"export const MESSAGES = {json.dumps(messages, indent=2)};",
        f"export const STATES = {json.dumps(states, indent=2)};",
    ]
    return "\n\n".join(parts) + "\n"


def render_states() -> str:
    """The states as the table of docs/frame.md."""
    lines = [
        "| State | Entered | Accepts | Emits | Leads to |",
        "|---|---|---|---|---|",
    ]
    for row in TABLE:
        cells = (
            row.state.value,
            row.entered,
            ", ".join(f"`{name}`" for name in row.accepts),
            ", ".join(f"`{name}`" for name in row.emits) or "–",  # noqa: RUF001 (a dash of the docs)
            ", ".join(state.value for state in row.leads),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def render_schemas() -> str:
    """One JSON Schema for each message, its type without the maker's prefix."""
    definitions = {item.name: _schema(item) for item in MESSAGES}
    init = definitions["init"]
    payload = init["properties"]["payload"]
    payload["properties"]["userData"]["anyOf"] = [
        {"required": ["dni"]},
        {"required": ["cuil"]},
    ]
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": _NOTE,
        "$defs": definitions,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _schema(item: Message) -> dict[str, Any]:
    name = item.name.replace(".", "[.]")
    return {
        "description": item.doc,
        "type": "object",
        "required": ["type", "payload"],
        "properties": {
            "type": {"pattern": f"^[A-Za-z0-9_-]+[.]{name}$"},
            "payload": as_schema(item.fields),
        },
    }


def _typedef(item: Message) -> str:
    """The payload's type, for editors and `tsc --checkJs`."""
    name = "".join(part.capitalize() for part in item.name.split("."))
    lines = ["/**", f" * {item.doc}", f" * @typedef {{object}} {name}Payload"]
    for field in item.fields:
        lines.extend(_property(field, ""))
    return "\n".join([*lines, " */"])


def _property(field: Field, prefix: str) -> list[str]:
    kinds = {Kind.INTEGER: "number", Kind.ARRAY: "string[]"}
    path = f"{prefix}{field.name}"
    shown = path if field.required else f"[{path}]"
    lines = [f" * @property {{{kinds.get(field.kind, field.kind.value)}}} {shown}"]
    for inner in field.fields:
        lines.extend(_property(inner, f"{path}."))
    return lines


TARGETS: Final = {
    _STATIC / "protocol.js": render_module,
    _STATIC / "messages.schema.json": render_schemas,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the files, or tell which is stale; the process's exit status."""
    parser = argparse.ArgumentParser(description="Make the page's protocol module.")
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(arguments)
    stale = [
        path
        for path, render in TARGETS.items()
        if not path.exists() or path.read_text(encoding="utf-8") != render()
    ]
    for path in stale:
        if args.check:
            sys.stderr.write(f"{path.name} is stale: run python -m embed.generate\n")
        else:
            path.write_text(TARGETS[path](), encoding="utf-8")
    return int(args.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
