"""Values that a template reads, compared with those that a route passes.

    with checked_inputs(app):
        await app.test_client().get("/admin/people/new")

`StrictUndefined` reports a missing value only in a branch that is rendered. This
check reads every branch of the template and of those that it extends or includes,
so that one page rendered in one configuration covers the others.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from jinja2 import Environment, Template, nodes
from jinja2.meta import find_undeclared_variables
from quart import Quart
from quart.signals import before_render_template


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


_READS: Final[dict[tuple[str, str], TemplateReads]] = {}
"""Reads by application and template, which are the same in each test of a process."""


@contextmanager
def checked_inputs(app: Quart) -> Iterator[None]:
    """Check every template that an application renders.

    Raises:
        AssertionError: on exit, with the lines `template: missing value`.
    """
    lacking: set[str] = set()

    def check(_: Quart, template: Template, context: dict[str, Any], **__: Any) -> None:
        name = str(template.name)
        key = (app.name, name)
        if key not in _READS:
            _READS[key] = template_reads(app.jinja_env, name)
        missing = _READS[key].missing({**app.jinja_env.globals, **context})
        lacking.update(f"{name}: {each}" for each in missing)

    with before_render_template.connected_to(check, app):
        yield
    assert not lacking, sorted(lacking)


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
    return reads


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
