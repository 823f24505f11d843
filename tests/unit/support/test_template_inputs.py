"""The check of templates' inputs: branches, ancestors, included and imported parts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from jinja2 import DictLoader, Environment

from tests.support.faces.template_inputs import template_reads


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
    }
    environment = Environment(loader=DictLoader(files), autoescape=True)

    assert template_reads(environment, "page").missing(context) == missing
