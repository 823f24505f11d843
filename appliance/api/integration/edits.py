"""Versions of what integrators' backends read and change: `ETag` and `If-Match`.

    asking = await caller(_READ)
    tag = await edits.tag(asking, Subject.WEBHOOK, webhook)
    ...
    return edits.tagged(json_response(…), tag)

    async with edits.unchanged(asking, Subject.WEBHOOK, webhook, sent):
        await core().webhooks.change(…)

The tag is the version of what a call can change; states that move by themselves, such
as those of signers, do not count. It is read before what is told beside it, so that it
is never newer. Without `If-Match` a call changes whatever is there.

Source: RFC 9110, 8.8.3 and 13.1.1; decisions "concurrency of edits".
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from quart import Response

from appliance.api.core import core
from appliance.api.wire import query, versions
from appliance.api.wire.versions import VERSIONED
from appliance.domain.console.edit_subjects import Subject
from appliance.domain.errors import ChangedMeanwhileError
from appliance.domain.integrators.integrators import IntegratorCaller
from appliance.record.edit_versions import Precondition, tag_of, version_of
from appliance.record.unit_of_work import demanding

_NOTHING: Final[Mapping[str, object]] = {}


async def tag(asking: IntegratorCaller, subject: Subject, key: str) -> str:
    """Return the tag of what is stored now, for `tagged`.

    Args:
        asking: the integrator; another's is as absent.
        subject: kind of what is read.
        key: of it.
    """
    (values,) = await core().edits.read((subject, key), owner=asking.integrator.id)
    return tag_of(version_of(values, VERSIONED[subject]))


def tagged(response: Response, tag: str) -> Response:
    """Put a tag on an answer.

    Args:
        response: changed in place.
        tag: as `tag` returned it.
    """
    response.headers["ETag"] = f'"{tag}"'
    return response


@asynccontextmanager
async def unchanged(
    asking: IntegratorCaller,
    subject: Subject,
    key: str,
    sent: Mapping[str, object] = _NOTHING,
) -> AsyncIterator[None]:
    """Change something only if it is as the call's `If-Match` says.

    Args:
        asking: the integrator.
        subject: kind of what is changed.
        key: of it.
        sent: members of the body, to be told beside those that are stored.

    Raises:
        BadHeaderError: `If-Match` is malformed.
        ChangedMeanwhileError: it is not; with `yours`, `current` and `version`.
    """
    wanted = query.if_match()
    if wanted is None:
        yield
        return
    precondition = Precondition(
        subject, key, VERSIONED[subject], wanted, owner=asking.integrator.id
    )
    try:
        await core().edits.check(precondition)
        with demanding(precondition):
            yield
    except ChangedMeanwhileError as exc:
        current = versions.current(subject, exc.stored)
        exc.extras |= {
            "yours": versions.yours(current, sent),
            "current": current,
            "version": f'"{tag_of(exc.version)}"',
        }
        raise
