"""K14: a forged code is written into the field of a signature that is there.

The verification page finds a signature by the code in its field's alternate name, so
whoever changes that later must be found out.
"""

import io

from pyhanko.pdf_utils.generic import TextStringObject, pdf_name
from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter

from appliance.domain.documents.verification import Answer
from tests.support.documents import pdfs
from tests.support.documents.software_signer import signed, software_signer
from worker.sandbox.verify.verify import verify


def with_alternate_name(pdf: bytes, words: str) -> bytes:
    """The file with another alternate name of its first field, appended."""
    writer = IncrementalPdfFileWriter(io.BytesIO(pdf), strict=False)
    field = writer.root["/AcroForm"]["/Fields"][0]
    field[pdf_name("/TU")] = TextStringObject(words)
    writer.update_container(field)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_alternate_name_that_was_changed_later() -> None:
    """It is reported, and the signature is not valid any more."""
    signer = software_signer()
    pdf = signed(pdfs.one_page())
    forged = f"https://firma.example/verificar/{'0' * 26}"

    (before,) = verify(pdf, [signer.root]).signatures
    (after,) = verify(with_alternate_name(pdf, forged), [signer.root]).signatures

    assert (before.alternate, before.verdict) == ("", Answer.YES)
    assert after.alternate == forged
    assert after.verdict is Answer.NO
