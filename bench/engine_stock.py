"""Stock pyHanko at the engine's work: the same keys, levels and validation data."""

import asyncio
import hashlib
import io
from datetime import datetime
from typing import Any

from asn1crypto import algos, cms, core, crl, ocsp, x509
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
from pyhanko.sign import PdfSignatureMetadata, PdfSigner
from pyhanko.sign.fields import SigFieldSpec, SigSeedSubFilter
from pyhanko.sign.general import as_signing_certificate, simple_cms_attribute
from pyhanko.sign.pkcs11 import PKCS11Signer
from pyhanko.sign.timestamps import DummyTimeStamper
from pyhanko.stamp import TextStampStyle
from pyhanko_certvalidator import ValidationContext
from pyhanko_certvalidator.registry import SimpleCertificateStore

from appliance.domain.keys.hsm_keys import ResidentKey, SignatureScheme
from appliance.domain.vocab import SignatureLevel
from bench.engine_place import EnginePlace
from hsm_config.pkcs11.objects import TSA_KEY

Box = tuple[float, float, float, float]


class HsmTimeStamper(DummyTimeStamper):
    """pyHanko's own timestamper within the process, its key in the HSM.

    Args:
        place: whose TSA's key signs.
    """

    def __init__(self, place: EnginePlace) -> None:
        certificate, *chain = _certificates(place.tsa_certificate, *place.chain)
        # pyHanko's companion leaves this one untyped.
        store = SimpleCertificateStore()  # type: ignore[no-untyped-call]
        store.register_multiple(chain)
        super().__init__(certificate, None, certs_to_embed=store)
        self._place = place

    def _sign_tst_info(
        self, tst_info_data: bytes, md_algorithm: str, dt: datetime
    ) -> tuple[bytes, cms.CMSAttributes]:
        """Sign as the parent does, but in the HSM."""
        digest = hashlib.new(md_algorithm, tst_info_data).digest()
        time = cms.Time({"utc_time": core.UTCTime(dt)})
        certificate = as_signing_certificate(self.tsa_cert)
        attributes = cms.CMSAttributes(
            [
                simple_cms_attribute("content_type", "tst_info"),
                simple_cms_attribute("signing_time", time),
                simple_cms_attribute("signing_certificate", certificate),
                simple_cms_attribute("message_digest", digest),
            ]
        )
        signed = hashlib.sha256(attributes.dump()).digest()
        scheme = SignatureScheme.ECDSA
        return self._place.sign_digest(TSA_KEY, signed, scheme), attributes

    def _build_signed_data(self, *parts: Any) -> dict[str, Any]:
        """Build what the parent does, which knows RSA alone."""
        made: dict[str, Any] = super()._build_signed_data(*parts)
        (signer,) = made["signer_infos"]
        algorithm = {"algorithm": "sha256_ecdsa"}
        signer["signature_algorithm"] = algos.SignedDigestAlgorithm(algorithm)
        return made


class StockPyhanko:
    """pyHanko's own signer with its own PKCS#11 signer, as documented.

    Args:
        place: whose resident key signs.
        box: where the signature shows; None for an invisible one.
        level: up to B-LT.
    """

    def __init__(
        self,
        place: EnginePlace,
        box: Box | None = None,
        level: SignatureLevel = SignatureLevel.B_B,
    ) -> None:
        key, own = place.resident.key, place.resident.certificate
        if not isinstance(key, ResidentKey):
            msg = "that key is not on the token"
            raise TypeError(msg)
        certificate, *chain = _certificates(own, *place.chain)
        signer = PKCS11Signer(
            place.session,
            signing_cert=certificate,
            ca_chain=chain,
            key_id=key.cka_id,
        )
        is_long = level is SignatureLevel.B_LT
        meta = PdfSignatureMetadata(
            field_name="Firma-1",
            md_algorithm="sha256",
            subfilter=SigSeedSubFilter.PADES,
            embed_validation_info=is_long,
            validation_context=_context(place) if is_long else None,
        )
        left, bottom, right, top = (round(side) for side in box or (0, 0, 0, 0))
        self._signer = PdfSigner(
            meta,
            signer=signer,
            timestamper=None if level is SignatureLevel.B_B else HsmTimeStamper(place),
            stamp_style=TextStampStyle(),
            new_field_spec=SigFieldSpec(
                "Firma-1", on_page=0, box=(left, bottom, right, top) if box else None
            ),
        )
        self._loop = asyncio.new_event_loop()

    def sign(self, pdf: bytes) -> bytes:
        """A signed document."""
        writer = IncrementalPdfFileWriter(io.BytesIO(pdf))
        out = self._loop.run_until_complete(self._signer.async_sign_pdf(writer))
        return bytes(out.getbuffer())

    def close(self) -> None:
        """Let go of its event loop and threads."""
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def _context(place: EnginePlace) -> ValidationContext:
    """What it validates by: the data that the engine embeds too."""
    evidence = place.resident.evidence
    return ValidationContext(
        trust_roots=_certificates(place.pki.chain[-1]),
        other_certs=_certificates(*evidence.certificates),
        ocsps=[ocsp.OCSPResponse.load(one) for one in evidence.ocsps],
        crls=[crl.CertificateList.load(one) for one in evidence.crls],
        allow_fetching=False,  # all is at hand
        revocation_mode="hard-fail",
    )


def _certificates(*ders: bytes) -> list[x509.Certificate]:
    return [x509.Certificate.load(one) for one in ders]
