"""What is edited as one, and its stored values, by which an edit has a version."""

from collections.abc import Mapping
from enum import StrEnum

Values = Mapping[str, object]
"""Stored values by name; empty: there is no such row."""


class Subject(StrEnum):
    """A kind of row, or of rows, that is edited as one."""

    INTEGRATOR = "integrator"
    """By code."""
    LOGO = "logo"
    """Of an integrator, by its code."""
    API_KEY = "api_key"
    DOMAIN = "domain"
    WEBHOOK = "webhook"
    PERSON = "person"
    """With their enrolment link, revocation PIN and lock."""
    CREDENTIAL = "credential"
    REQUEST = "request"
    """By number."""
    PROCESS = "process"
    """What a backend says of the requests that it asked for as one."""
    ANCHOR = "anchor"
    ADMINISTRATOR = "administrator"
    """By name."""
    UPLOAD = "upload"
    """A document that a backend uploaded."""
    SIGNER = "signer"
    """A person by CUIL, as backends know them."""
