"""Certificates that say what the rows say, for tests of other locks."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

from appliance.domain.people.identity import Credential, Person
from appliance.pki.validation.credential_statement import Statement


async def stated(person: Person, credential: Credential, _: datetime) -> Statement:
    """A certificate that says what the rows say."""
    start, end = credential.not_before, credential.not_after
    return Statement(person.name, person.cuil, False, start, end, None)  # noqa: FBT003


AS_RECORDED = cast("Any", SimpleNamespace(demand=stated))
"""A played `CredentialStatements` that refuses nothing."""
