"""How signatures for an integrator are made: level, timestamps, digest."""

from dataclasses import dataclass
from typing import Any, Final

from quart import Blueprint, Response

from admin_ui import session, words
from admin_ui.core import core
from admin_ui.render import NONE, Faults, again, go, page
from appliance.domain.integrators.integrators import IntegratorView
from appliance.domain.keys.hsm_keys import DigestAlgorithm
from appliance.domain.requests.levels import ProfileWishes
from appliance.domain.vocab import SignatureLevel, TimestampPolicy

blueprint = Blueprint(
    "profile", __name__, url_prefix="/admin/integrators/<code>/profile"
)


_CHOICES: Final[dict[str, frozenset[str]]] = {
    "level": frozenset(SignatureLevel),
    "policy": frozenset(TimestampPolicy),
    "digest": frozenset(DigestAlgorithm),
}


@dataclass(frozen=True, slots=True)
class _ProfileForm:
    """Fields of the form *Signatures*; empty: the installation's."""

    level: str
    policy: str
    digest: str


def wishes_of(view: IntegratorView) -> ProfileWishes:
    """What an integrator asks for.

    Args:
        view: the integrator.
    """
    return ProfileWishes(view.level, view.timestamp_policy, view.digest, view.tsa)


async def _context(code: str) -> dict[str, Any]:
    view = await core().integrators.get(code)
    settings = core().settings
    return {
        "view": view,
        "usual": settings.signature_profile,
        "in_force": settings.signature_profile.narrowed(wishes_of(view)),
        "is_pss": settings.hsm.signature_scheme == "rsa-pss",
    }


@blueprint.get("")
async def show(code: str) -> Response:
    """`GET …/profile`."""
    context = await _context(code)
    wishes = wishes_of(context["view"])
    chosen = _ProfileForm(
        level=wishes.level or "",
        policy=wishes.timestamp_policy or "",
        digest=wishes.digest or "",
    )
    return await page("profile.html", faults=NONE, chosen=chosen, **context)


@blueprint.post("")
async def change(code: str) -> Response:
    """`POST …/profile`: all three; empty: the installation's. Who stamps stays."""
    before = await core().integrators.get(code)
    chosen = session.typed(_ProfileForm)
    wrong = {
        name: words.say("Choose an option from the list.")
        for name, choices in _CHOICES.items()
        if (value := getattr(chosen, name)) and value not in choices
    }
    if wrong:
        told = Faults(wrong)
        return await again("profile.html", told, chosen=chosen, **await _context(code))
    wishes = ProfileWishes(
        SignatureLevel(chosen.level) if chosen.level else None,
        TimestampPolicy(chosen.policy) if chosen.policy else None,
        DigestAlgorithm(chosen.digest) if chosen.digest else None,
        before.tsa,
    )
    await core().integrators.set_profile(session.actor(), code, wishes)
    return go("profile.show", code=code, done="saved")
