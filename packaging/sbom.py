# ruff: noqa: INP001 (it stands alone, run by a path)
"""Print what an installation is made of, as a CycloneDX 1.6 bill of materials.

    VENV/bin/python packaging/sbom.py SOURCE

SOURCE is a checkout. It stands alone: the standard library, run by the interpreter
whose packages are meant. The same installation gives the same bytes.

Source: ECMA-424 (CycloneDX 1.6); package-url's types pypi, npm, cargo and generic;
PEP 770 (`.dist-info/sboms`); auditwheel (`*.libs`).
"""

import base64
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

_Component = dict[str, Any]
_REQUIRED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIBRARY = re.compile(r"(?P<name>.+?)(-[0-9a-f]{8})?\.so(\.(?P<version>[0-9.]+))?")
_EXTRA = "extra =="
"""In a requirement that an installation without extras does not have."""


def main() -> int:
    """Print it; the process's exit status."""
    source = Path(sys.argv[1])
    installed = {_normal(each.name): each for each in distributions()}
    own = installed.pop("rubrica")
    parts = [_distribution(each) for _, each in sorted(installed.items())]
    parts += _browser_libraries(source / "appliance/web/vendor/package-lock.json")
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "rubrica",
                "name": "rubrica",
                "version": own.version,
                "licenses": _licences(own),
            }
        },
        "components": parts,
        "dependencies": _dependencies(own, installed),
    }
    sys.stdout.write(json.dumps(bill, indent=1, ensure_ascii=False) + "\n")
    return 0


def _normal(name: str) -> str:
    """A project's name as it is compared. Source: PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _purl(of: Distribution) -> str:
    return f"pkg:pypi/{_normal(of.name)}@{of.version}"


def _distribution(of: Distribution) -> _Component:
    """A Python package, with what was compiled into it or lies beside it."""
    bundled = [*_told_components(of), *_bundled_libraries(of)]
    return {
        "type": "library",
        "bom-ref": _purl(of),
        "name": of.name,
        "version": of.version,
        "purl": _purl(of),
        "licenses": _licences(of),
        **({"components": bundled} if bundled else {}),
    }


def _licences(of: Distribution) -> list[dict[str, Any]]:
    """An SPDX expression where the package states one (PEP 639), else its words."""
    data = of.metadata
    if data["License-Expression"]:
        return [{"expression": data["License-Expression"]}]
    words = [
        line.rpartition(" :: ")[2]
        for line in data.get_all("Classifier") or ()
        if line.startswith("License ::")
    ] or [(data["License"] or "").partition("\n")[0]]
    return [{"license": {"name": each}} for each in words if each]


def _told_components(of: Distribution) -> Iterator[_Component]:
    """What a package says was compiled into it, without what only its builder had."""
    for path in sorted(of.files or (), key=str):
        if ".dist-info/sboms/" not in str(path) or path.suffix != ".json":
            continue
        told = json.loads(Path(str(of.locate_file(path))).read_text("utf-8"))
        for each in told.get("components", ()):
            purl = str(each.get("purl", "")).partition("?")[0]
            yield {
                "type": "library",
                "name": each["name"],
                **({"version": each["version"]} if "version" in each else {}),
                **({"purl": purl} if purl else {}),
                **({"licenses": each["licenses"]} if each.get("licenses") else {}),
            }


def _bundled_libraries(of: Distribution) -> Iterator[_Component]:
    """Shared libraries of others that a wheel brings along, by their file names."""
    for path in sorted(of.files or (), key=str):
        folder, found = path.parts[0], _LIBRARY.fullmatch(path.name)
        if folder.endswith(".libs") and found:
            version = found["version"]
            yield {
                "type": "library",
                "name": found["name"],
                **({"version": version} if version else {}),
                "properties": [{"name": "file", "value": str(path)}],
            }


def _browser_libraries(lock: Path) -> Iterator[_Component]:
    """What runs in browsers, with the hashes that it was fetched by."""
    for place, told in sorted(json.loads(lock.read_text("utf-8"))["packages"].items()):
        if "integrity" not in told:
            continue
        name = place.removeprefix("node_modules/")
        purl = f"pkg:npm/{name.replace('@', '%40')}@{told['version']}"
        kind, _, digest = told["integrity"].partition("-")
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": told["version"],
            "purl": purl,
            "licenses": [{"license": {"name": told.get("license", "not told")}}],
            "hashes": [
                {
                    "alg": kind.upper().replace("SHA", "SHA-"),
                    "content": base64.b64decode(digest).hex(),
                }
            ],
        }


def _dependencies(
    own: Distribution, installed: dict[str, Distribution]
) -> list[dict[str, Any]]:
    """Who needs whom, among what is installed."""
    refs = {name: _purl(each) for name, each in installed.items()}
    return [
        {
            "ref": "rubrica" if each is own else _purl(each),
            "dependsOn": sorted({refs[name] for name in _needed(each) if name in refs}),
        }
        for each in (own, *(each for _, each in sorted(installed.items())))
    ]


def _needed(of: Distribution) -> Iterator[str]:
    for line in of.requires or ():
        name = _REQUIRED.match(line)
        if name and _EXTRA not in line:
            yield _normal(name[0])


if __name__ == "__main__":
    sys.exit(main())
