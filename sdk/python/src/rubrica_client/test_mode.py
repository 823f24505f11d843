"""The test mode of an integrator's backend: people who are made up, and sign at once.

It is there in PREPROD alone ("Test mode" of the service's documentation).
"""

from collections.abc import Sequence
from typing import Any, Final

from rubrica_client import models
from rubrica_client.calls import Call, R, Resource, given, listing, operation

_SIGNERS: Final = "/api/integration/test/signers"


class TestSigners(Resource[R]):
    """People of the test mode, who are there outside PROD alone."""

    __test__ = False

    @operation("POST", _SIGNERS)
    def create(
        self,
        *,
        nombre: str | None = None,
        cuil: str | None = None,
        email: str | None = None,
        idioma: models.Language | None = None,
    ) -> Call[models.TestSigner]:
        """Make up somebody who is ready to sign.

        Args:
            nombre: made up unless given, as all of it.
            cuil: 11 digits with or without dashes; of one who was deleted: they are
                back, with the passwords of before.
            email: where nothing is sent to.
            idioma: of their mails.
        """
        body = given(nombre=nombre, cuil=cuil, email=email, idioma=idioma)
        return Call(body=body)

    @listing("GET", _SIGNERS)
    def list(self) -> Call[models.TestSigner]:
        """The integrator's made-up people, newest first."""
        return Call()

    @operation("GET", f"{_SIGNERS}/{{cuil}}")
    def get(self, cuil: str) -> Call[models.TestSigner]:
        """One made-up person.

        Args:
            cuil: whose.
        """
        return Call(cuil)

    @operation("DELETE", f"{_SIGNERS}/{{cuil}}")
    def delete(self, cuil: str) -> Call[None]:
        """Have somebody made up sign no more; what they signed stays.

        Args:
            cuil: whose.
        """
        return Call(cuil)

    @operation("GET", f"{_SIGNERS}/{{cuil}}/otp")
    def otp(self, cuil: str) -> Call[models.TestCode]:
        """A one-time code of somebody made up that is accepted now.

        Args:
            cuil: whose.
        """
        return Call(cuil)

    @operation("GET", f"{_SIGNERS}/{{cuil}}/mails")
    def mails(self, cuil: str) -> Call[Sequence[models.TestMail]]:
        """The mails to somebody made up, newest first.

        Args:
            cuil: whose.
        """
        return Call(cuil)

    @operation("POST", f"{_SIGNERS}/{{cuil}}/sign")
    def sign(
        self,
        cuil: str,
        *,
        process: str | None = None,
        request: int | None = None,
        batch: str | None = None,
    ) -> Call[dict[str, Any]]:
        """Sign as somebody made up would.

        Args:
            cuil: whose.
            process: `procesoId` of a request.
            request: `solicitudId` of their part of it, in place of that.
            batch: `loteId`: all of a batch, in place of either.
        """
        body = given(procesoId=process, solicitudId=request, loteId=batch)
        return Call(cuil, body=body)

    @operation("POST", f"{_SIGNERS}/{{cuil}}/reject")
    def reject(
        self,
        cuil: str,
        *,
        process: str | None = None,
        request: int | None = None,
        motivo: str | None = None,
    ) -> Call[dict[str, Any]]:
        """Refuse to sign as somebody made up would.

        Args:
            cuil: whose.
            process: `procesoId` of a request.
            request: `solicitudId` of their part of it, in place of that.
            motivo: why.
        """
        body = given(procesoId=process, solicitudId=request, motivo=motivo)
        return Call(cuil, body=body)


class Test(Resource[R]):
    """The test mode."""

    __test__ = False

    def __init__(self, runner: R) -> None:
        super().__init__(runner)
        self.signers = TestSigners(runner)
