"""Hashes of the passwords that tests give everybody, each made once in a process.

    login_phc = await CachedHashes(slots).hash(b"una clave")

What is kept is as real as ever, and so is each check of it; only that two people with
one password have one salt, which no test asks about.
"""

from appliance.keys.password_hashing import Passwords

_KEPT: dict[bytes, str] = {}


class CachedHashes(Passwords):
    """Login passwords, hashed again only where that was not done before."""

    async def hash(self, password: bytes) -> str:
        """Hash a login password, or give what became of it before."""
        if password not in _KEPT:
            _KEPT[password] = await super().hash(password)
        return _KEPT[password]
