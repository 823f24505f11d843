"""Several byte strings in one column."""


def join(parts: tuple[bytes, ...]) -> bytes:
    """Put parts into one column, with their length in four bytes before each."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def split(joined: bytes) -> tuple[bytes, ...]:
    """Undo `join`."""
    parts = []
    at = 0
    while at < len(joined):
        size = int.from_bytes(joined[at : at + 4], "big")
        parts.append(joined[at + 4 : at + 4 + size])
        at += 4 + size
    return tuple(parts)
