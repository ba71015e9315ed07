"""Show the examples of docstrings as code on the site.

A docstring is read as Markdown, for which `>>>` is a quotation of a quotation of a quotation, and
`u[time][0]` a link. This extension of griffe, which reads the Python package for the site, puts each
example into a fenced block of the kind `pycon`.
"""

import re

import griffe

EXAMPLE = re.compile(r"^( *)>>> .*(?:\n.*\S.*)*", re.MULTILINE)


def fenced(text: str) -> str:
    """Fence each example, which ends at an empty line or at the end.

    >>> fenced("Double.\\n\\n>>> 2 * 2\\n4")
    'Double.\\n\\n```pycon\\n>>> 2 * 2\\n4\\n```'
    """
    return EXAMPLE.sub(lambda example: f"{example[1]}```pycon\n{example[0]}\n{example[1]}```", text)


class Doctests(griffe.Extension):
    """griffe calls on_object for all objects but the package itself."""

    def on_package(self, *, pkg: griffe.Module, **_: object) -> None:
        self.on_object(obj=pkg)

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
