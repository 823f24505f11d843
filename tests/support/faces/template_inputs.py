"""Values that a template reads, compared with those that a route passes.

    with checked_inputs():
        await app.test_client().get("/admin/people/new")

`StrictUndefined` reports a missing value only in a branch that is rendered. This
check reads every branch of the template, of those that it extends or includes, and
of the macros that it imports, so that one page rendered in one configuration covers
the others.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import DictLoader, Environment, Template, nodes
from jinja2.meta import find_undeclared_variables

from tests.support.faces.rendered_templates import observed_renderings
from tests.support.processes.setup_cache import told_once


@dataclass(frozen=True)
class TemplateReads:
    """Names that a template needs in its context, and their attributes."""

    names: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    """Pairs of a name and an attribute, such as `typed.cuil`."""

    def __or__(self, other: "TemplateReads") -> "TemplateReads":
        """Return the reads of both."""
        return TemplateReads(
            self.names | other.names, self.attributes | other.attributes
        )

    def missing(self, context: Mapping[str, Any]) -> list[str]:
        """List what a context lacks, sorted.

        Args:
            context: values by name, globals of the environment among them.

        Returns:
            Names, such as `mail_is_on`, and attributes, such as `typed.by_mail`. An
            attribute of None is not listed: templates test for None before.
        """
        lacking = {name for name in self.names if name not in context}
        lacking |= {
            f"{name}.{attribute}"
            for name, attribute in self.attributes
            if name in context and not _has(context[name], attribute)
        }
        return sorted(lacking)

    def without(self, names: set[str]) -> "TemplateReads":
        """Return the reads of all other names."""
        return TemplateReads(
            self.names - names,
            frozenset(pair for pair in self.attributes if pair[0] not in names),
        )


_READS: Final[dict[tuple[str, int], TemplateReads]] = {}
"""Reads by template and texts of its environment, the same in each test."""


@contextmanager
def checked_inputs() -> Iterator[None]:
    """Check every template that this process renders.

    Raises:
        AssertionError: on exit, with the lines `template: missing value`.
    """
    lacking: set[str] = set()

    def check(template: Template, context: dict[str, Any]) -> None:
        if template.name is not None:
            missing = _reads(template.environment, template.name).missing(context)
            lacking.update(f"{template.name}: {each}" for each in missing)

    with observed_renderings(check):
        yield
    assert not lacking, sorted(lacking)


def _reads(environment: Environment, name: str) -> TemplateReads:
    """Return the reads of a template, found once for each set of templates."""
    loader = environment.loader
    # Each application of a face reads its templates again, and they are the same.
    is_read = isinstance(loader, DictLoader)
    texts = loader.mapping.items() if isinstance(loader, DictLoader) else [id(loader)]
    key = (name, hash(frozenset(texts)))
    if key not in _READS and is_read:
        # To parse a page and what it is made of takes 30 ms, of each process.
        place = f"reads-{hashlib.sha256(repr(key).encode()).hexdigest()}"
        told = told_once(place, lambda: _told(template_reads(environment, name)))
        _READS[key] = _read(told)
    elif key not in _READS:
        _READS[key] = template_reads(environment, name)
    return _READS[key]


def _told(reads: TemplateReads) -> str:
    """Write reads as JSON."""
    return json.dumps([sorted(reads.names), sorted(reads.attributes)])


def _read(told: str) -> TemplateReads:
    """Read what `_told` wrote."""
    names, attributes = json.loads(told)
    return TemplateReads(frozenset(names), frozenset(map(tuple, attributes)))


def _has(value: Any, attribute: str) -> bool:
    """Return whether Jinja finds an attribute or a key; true of None."""
    if value is None or hasattr(value, attribute):
        return True
    return isinstance(value, Mapping) and attribute in value


def template_reads(environment: Environment, name: str) -> TemplateReads:
    """Collect the reads of a template, its ancestors and what they include.

    Args:
        environment: loads and parses the template.
        name: of the template.
    """
    tree = _tree(environment, name)
    reads = _own_reads(tree)
    for parent in tree.find_all(nodes.Extends):
        parent_name = _constant(parent.template)
        # A block sees what its ancestors set outside of blocks, such as `ui`.
        reads = reads.without(_set_by_ancestors(environment, parent_name))
        reads |= template_reads(environment, parent_name)
    # An included template sees loop variables of the place that includes it.
    local = {each.name for each in tree.find_all(nodes.Name) if each.ctx == "store"}
    local |= _set_by_ancestors(environment, name)
    for part in tree.find_all(nodes.Include):
        reads |= template_reads(environment, _constant(part.template)).without(local)
    for source, names, with_context in _imported(tree):
        macros = _macro_reads(environment, source, names)
        if with_context:
            reads |= macros.without(local)
        else:
            # Of a file without the context: globals alone, never the page's values.
            lacking = macros.names - environment.globals.keys()
            reads |= TemplateReads(
                frozenset(f"{source}: {each}" for each in lacking), frozenset()
            )
    return reads


def _imported(tree: nodes.Template) -> Iterator[tuple[str, set[str], bool]]:
    """Yield each imported file, the macros used of it, and if it has the context."""
    for node in tree.find_all(nodes.FromImport):
        names = {each if isinstance(each, str) else each[0] for each in node.names}
        yield _constant(node.template), names, node.with_context
    for module in tree.find_all(nodes.Import):
        used = {
            read.attr
            for read in tree.find_all(nodes.Getattr)
            if isinstance(read.node, nodes.Name) and read.node.name == module.target
        }
        yield _constant(module.template), used, module.with_context


def _macro_reads(
    environment: Environment, source: str, names: set[str]
) -> TemplateReads:
    """Collect the reads of some macros of a file, and of those that they call."""
    tree = _tree(environment, source)
    macros = {macro.name: macro for macro in tree.find_all(nodes.Macro)}
    reads = TemplateReads(frozenset(), frozenset())
    left, seen = set(names), set[str]()
    while left:
        name = left.pop()
        seen.add(name)
        body = nodes.Template([macros[name]], lineno=1)
        body.set_environment(environment)
        own = _own_reads(body)
        left |= (own.names & macros.keys()) - seen
        reads |= own
    return reads.without(_set_at_top(tree))


def _own_reads(tree: nodes.Template) -> TemplateReads:
    """Collect the reads of one file, without names that it asks `is defined` of.

    A key in brackets is not an attribute: `errors["code"]` follows `"code" in errors`.
    """
    free = find_undeclared_variables(tree)
    attributes = frozenset(
        (read.node.name, read.attr)
        for read in tree.find_all(nodes.Getattr)
        if isinstance(read.node, nodes.Name) and read.node.name in free
    )
    optional = {
        test.node.name
        for test in tree.find_all(nodes.Test)
        if test.name == "defined" and isinstance(test.node, nodes.Name)
    }
    # Jinja counts a name that is set in one branch, or outside of the block that
    # reads it, as read from the context.
    own = {name for each in tree.find_all(nodes.Assign) for name in _targets(each)}
    own |= _set_at_top(tree)
    return TemplateReads(frozenset(free), attributes).without(optional | own)


def _set_by_ancestors(environment: Environment, name: str) -> set[str]:
    """Collect the names that a template and its ancestors set outside of blocks."""
    tree = _tree(environment, name)
    found = _set_at_top(tree)
    for parent in tree.find_all(nodes.Extends):
        found |= _set_by_ancestors(environment, _constant(parent.template))
    return found


def _set_at_top(tree: nodes.Template) -> set[str]:
    """Collect the names that one file sets outside of blocks."""
    found = set()
    for node in tree.body:
        if isinstance(node, nodes.Import):
            found.add(node.target)
        elif isinstance(node, nodes.FromImport):
            found |= {each if isinstance(each, str) else each[1] for each in node.names}
        elif isinstance(node, nodes.Macro):
            found.add(node.name)
        elif isinstance(node, nodes.Assign):
            found |= _targets(node)
    return found


def _targets(assignment: nodes.Assign) -> set[str]:
    """Return the names on the left of a `set`."""
    names = assignment.find_all(nodes.Name)
    return {each.name for each in names if each.ctx == "store"}


def _tree(environment: Environment, name: str) -> nodes.Template:
    """Parse a template of the environment's loader."""
    assert environment.loader is not None
    source, _, _ = environment.loader.get_source(environment, name)
    return environment.parse(source)


def _constant(expression: nodes.Expr) -> str:
    """Return the name in `extends` or `include`; a computed one cannot be checked."""
    assert isinstance(expression, nodes.Const), expression
    return str(expression.value)
