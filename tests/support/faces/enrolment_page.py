"""What the page behind an enrolment link shows, and what its form carries along."""

import re


def seed_of(page: str) -> str:
    """The seed of the one-time codes that a page shows, in Base32."""
    (shown,) = re.findall(r'id="seed">([A-Z2-7 ]+)<', page)
    return str(shown).replace(" ", "")


def pin_of(page: str) -> str:
    """The revocation PIN that a page shows; empty if it shows none."""
    found = re.search(r'id="pin">([0-9A-Z-]+)<', page)
    return found.group(1) if found else ""


def opening_of(page: str) -> str:
    """What its form carries along: which browser it was that opened the link."""
    (hidden,) = re.findall(r'name="opening" value="([^"]+)"', page)
    return str(hidden)
