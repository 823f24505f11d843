"""What the demo site shows a visitor of a trial: passwords, codes and addresses.

It stands in for the demo people's telephones, so that a trial needs no terminal. An
installation that is no trial shows nothing of this.
"""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final

from appliance.cli.demo.otp import console_code, person_code
from appliance.cli.demo.setup import load_console, load_people, refuse_outside_trial
from appliance.domain.ids import RequestId
from appliance.domain.people.identity import format_cuil

if TYPE_CHECKING:
    from appliance.bootstrap import ServiceRegistry

_NOBODY: Final = ("", 0.0)


@dataclass(frozen=True, slots=True)
class DemoPerson:
    """A demo person, with what their telephone and their notebook hold."""

    cuil: str
    """With hyphens, as in the site's form."""
    name: str
    email: str
    password: str = field(repr=False)
    signing_password: str = field(repr=False)
    code: str = field(repr=False)
    """The next one-time code that was not used yet."""
    wait_s: float
    """Seconds until the code is accepted; 0: now."""


@dataclass(frozen=True, slots=True)
class DemoConsole:
    """The console and its first administrator."""

    url: str
    user: str
    password: str = field(repr=False)
    code: str = field(repr=False)
    wait_s: float


@dataclass(frozen=True, slots=True)
class Visit:
    """Everything that a visitor needs to try the trial in a browser."""

    people: tuple[DemoPerson, ...]
    console: DemoConsole | None
    """None before `rubrica demo setup` has made it."""
    step_left_s: float
    """Seconds until every code changes."""
    docs_url: str
    verify_url: str

    def as_json(self) -> dict[str, object]:
        """Return it for JSON."""
        return asdict(self)


async def read_visit(front: "ServiceRegistry") -> Visit:
    """Read passwords and make the present codes.

    Args:
        front: of a trial; opens the seeds.

    Raises:
        ApplianceError: `NOT_A_TRIAL`, `STORE_UNAVAILABLE`.
    """
    from appliance.identity.totp import STEP_S  # noqa: PLC0415 (heavy)

    settings = front.settings
    refuse_outside_trial(settings)
    known = load_people(settings)
    return Visit(
        people=tuple(
            [await _person(front, cuil, kept) for cuil, kept in known.items()]
        ),
        console=await _console(front),
        step_left_s=STEP_S - front.clock.now().timestamp() % STEP_S,
        docs_url=f"{settings.web.web_url}/docs",
        verify_url=settings.verify_url,
    )


async def _person(
    front: "ServiceRegistry", cuil: str, known: dict[str, str]
) -> DemoPerson:
    code, wait_s = await person_code(front, cuil)
    return DemoPerson(
        cuil=format_cuil(cuil),
        name=known["nombre"],
        email=known["email"],
        password=known["clave"],
        signing_password=known["claveDeFirma"],
        code=code,
        wait_s=wait_s,
    )


async def _console(front: "ServiceRegistry") -> DemoConsole | None:
    known = load_console(front.settings)
    if not known:
        return None
    code, wait_s = await console_code(front, known["usuario"]) or _NOBODY
    return DemoConsole(
        url=f"{front.settings.web.admin_url}/admin/",
        user=known["usuario"],
        password=known["clave"],
        code=code,
        wait_s=wait_s,
    )


async def signature_page(front: "ServiceRegistry", request: int) -> str | None:
    """Find the public page of a signature.

    Args:
        front: of a trial.
        request: whose document was signed.

    Returns:
        Its address; None if the request has no published signature.

    Raises:
        ApplianceError: `NOT_A_TRIAL`, `STORE_UNAVAILABLE`.
    """
    from appliance.signing.activations.activation_store import ActivationStore  # noqa: PLC0415 (heavy)

    refuse_outside_trial(front.settings)
    async with front.core.store.read() as transaction:
        found = await ActivationStore(transaction).coded([RequestId(request)])
    code, _ = found.get(RequestId(request), (None, None))
    return None if code is None else f"{front.settings.verify_url}/{code}"
