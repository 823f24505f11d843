"""What every request passes before its view: session, versions of forms, proof."""

from quart import Response, g, request
from quart.typing import ResponseReturnValue

from admin_ui import edits, kept_form, proof, session
from appliance.domain.errors import ApplianceError, ErrorCode


async def admit(public: bool) -> ResponseReturnValue | None:  # noqa: FBT001 (Face.admit)
    """Let a request to a view through, or answer in its place.

    Args:
        public: whether the view needs nobody signed in.

    Raises:
        ChangedMeanwhileError: a form is older than what is stored.
        ApplianceError: as `session.admit`.
    """
    try:
        answer = await session.admit(public)
    except ApplianceError as exc:
        is_former = exc.code is ErrorCode.CSRF_REFUSED and g.get("console") is not None
        answer = kept_form.back() if is_former else None
        if answer is None:
            raise
        return answer
    if isinstance(answer, Response) and request.method == "POST":
        await kept_form.keep(answer)
    if answer is not None or g.console is None:
        return answer
    await edits.begin()
    kept_form.restore()
    return await proof.demand_recent()
