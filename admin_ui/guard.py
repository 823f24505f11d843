"""What every request passes before its view: session, versions of forms, proof."""

from quart import Response, g, request
from quart.typing import ResponseReturnValue

from admin_ui import edits, kept_form, proof, session


async def admit(public: bool) -> ResponseReturnValue | None:  # noqa: FBT001 (Face.admit)
    """Let a request to a view through, or answer in its place.

    Args:
        public: whether the view needs nobody signed in.

    Raises:
        ChangedMeanwhileError: a form is older than what is stored.
        ApplianceError: as `session.admit`.
    """
    answer = await session.admit(public)
    if isinstance(answer, Response) and request.method == "POST":
        await kept_form.keep(answer)
    if answer is not None or g.console is None:
        return answer
    await edits.begin()
    kept_form.restore()
    return await proof.demand_recent()
