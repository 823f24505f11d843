"""PDFBox Preflight, another's validator of PDF/A-1b, where the machine has it.

Of Debian: `libpdfbox2-java`, `libactivation-java`, `libjaxb-api-java` and a Java.
"""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from lxml import etree

_JARS: Final = tuple(
    Path("/usr/share/java") / f"{name}.jar"
    for name in (
        "preflight", "pdfbox2", "fontbox2", "xmpbox", "commons-logging",
        "javax.activation", "jaxb-api",
    )
)  # fmt: skip
_MAIN: Final = "org.apache.pdfbox.preflight.Validator_A1b"
_MOST_S: Final = 300
CAN_PREFLIGHT: Final = (
    shutil.which("java") is not None and all(jar.exists() for jar in _JARS)
)  # fmt: skip


def preflight_faults(files: Mapping[str, bytes], folder: Path) -> dict[str, list[str]]:
    """What it finds in each of several files, by their names; one Java does them all.

    Args:
        files: by names without slashes.
        folder: an empty one.
    """
    for name, pdf in files.items():
        (folder / name).write_bytes(pdf)
    listed = folder / "list"
    listed.write_text("".join(f"{folder / name}\n" for name in files))
    subprocess.run(
        [
            *("java", "-cp", ":".join(map(str, _JARS)), _MAIN),
            *("xml", "group", str(listed)),
        ],
        # Its exit status tells of faults, too; its log is of fonts.
        check=False,
        capture_output=True,
        timeout=_MOST_S,
    )
    result = etree.parse(folder / "list.preflight.xml").getroot()
    found = {str(each.get("name")): _faults(each) for each in result}
    return {name: found.get(name, ["not validated"]) for name in files}


def _faults(told: "etree._Element") -> list[str]:
    faults = [
        f"{each.findtext('code')} {each.findtext('details')}"
        for each in told.iter("error")
    ]
    is_valid = told.findtext("isValid") == "true"
    return sorted(set(faults)) or ([] if is_valid else ["not valid"])
