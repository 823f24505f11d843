"""The check of templates' inputs: branches, ancestors, included and imported parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from jinja2 import DictLoader, Environment

from tests.support.faces import rendered_templates
from tests.support.faces.template_inputs import checked_inputs, template_reads


@dataclass(frozen=True, slots=True)
class Typed:
    """A form with one field."""

    name: str = ""


BASE = '{% import "ui" as ui %}{% if faults is defined %}{{ faults }}{% endif %}'


@pytest.mark.parametrize(
    ("page", "context", "missing"),
    [
        ("{{ a }}", {}, ["a"]),
        ("{{ a }}", {"a": None}, []),
        ("{% if a %}{{ b }}{% endif %}", {"a": False}, ["b"]),
        ("{% if a %}{{ typed.mail }}{% endif %}{{ typed.name }}", {}, ["a", "typed"]),
        ("{{ typed.mail }}{{ typed.name }}", {"typed": {"name": ""}}, ["typed.mail"]),
        ("{{ typed.mail }}{{ typed.name }}", {"typed": Typed()}, ["typed.mail"]),
        ("{{ typed['mail'] }}", {"typed": {}}, []),
        ("{{ typed.mail }}", {"typed": None}, []),
        ("{% for a in all %}{{ a.b }}{% endfor %}", {"all": []}, []),
        ("{% if a %}{% set b = 1 %}{% endif %}{{ b }}", {"a": 1}, []),
        ('{% extends "base" %}{% block x %}{{ ui.of(b) }}{% endblock %}', {}, ["b"]),
        ('{% extends "base" %}{% block x %}{{ faults }}{% endblock %}', {}, ["faults"]),
        ('{% for a in all %}{% include "part" %}{% endfor %}', {"all": []}, ["b"]),
        ('{% from "ui" import of %}{{ of(1) }}{{ c }}', {}, ["c"]),
        ('{% import "ui" as u %}{% block x %}{{ u.of(c) }}{% endblock %}', {}, ["c"]),
        ('{% import "form" as f with context %}{{ f.fault(1) }}', {}, ["errors"]),
        ('{% import "form" as f with context %}{{ f.all(1) }}', {}, ["errors", "t"]),
        ('{% import "form" as f with context %}{{ f.plain() }}', {}, []),
        ('{% from "form" import fault with context %}', {}, ["errors"]),
        ('{% import "form" as f %}{{ f.fault(1) }}', {}, ["form: errors"]),
    ],
)
def test_missing_input_is_listed(
    page: str, context: Mapping[str, Any], missing: list[str]
) -> None:
    """In a branch that is not rendered, too; what the template sets is not."""
    files = {
        "page": page,
        "base": BASE,
        "part": "{{ a }}{{ b }}",
        "ui": "{% macro of(value) %}{{ value }}{% endmacro %}",
        "form": (
            "{% macro fault(name) %}{{ errors[name] }}{% endmacro %}"
            "{% macro all(name) %}{{ t(fault(name)) }}{% endmacro %}"
            "{% macro plain() %}{% endmacro %}"
        ),
    }
    environment = Environment(loader=DictLoader(files), autoescape=True)

    assert template_reads(environment, "page").missing(context) == missing


async def test_whatever_is_rendered_is_checked() -> None:
    """By any environment, also in a branch that is not rendered."""
    files = {"page": "{% if wanted %}{{ name }}{% endif %}"}
    plain = Environment(loader=DictLoader(files), autoescape=True)
    later = Environment(loader=DictLoader(files), autoescape=True, enable_async=True)

    # The run checks what its tests render, and would fail this one.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rendered_templates, "_OBSERVERS", [])
        with checked_inputs():
            plain.get_template("page").render(wanted=False, name="")
        with pytest.raises(AssertionError, match="page: name"), checked_inputs():
            plain.get_template("page").render(wanted=False)
        with pytest.raises(AssertionError, match="page: name"), checked_inputs():
            await later.get_template("page").render_async(wanted=False)
