"""The documentation site: `make docs` builds it in out/docs, with warnings as errors."""

from __future__ import annotations

from typing import Any

import docutils.nodes
import latex2mathml.converter

import opticoll

project = "opticoll"
author = copyright = "The opticoll developers"
version = release = opticoll.__version__
html_title = f"opticoll {release}"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
exclude_patterns = ["requirements.txt", "**/.ipynb_checkpoints"]
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["wide_output.css"]
html_theme_options = {
    "source_repository": "https://github.com/opticoll/opticoll",
    "source_branch": "main",
    "source_directory": "docs/",
}
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_custom_sections = [("Columns", "params_style"), ("Fields", "params_style")]
default_role = "code"
nb_execution_mode = "off"  # the notebooks are kept with their outputs, which `make validate` checks
copybutton_prompt_text = "$ "
nitpicky = False
html_math_renderer = "mathml"


def signature(
    _app: object, _what: str, name: str, kind: object, *_: object
) -> tuple[str, str] | None:
    """Hides the signature of a class that only functions make: its fields are listed below it."""
    from opticoll.outputs.rows import Row

    return ("", "") if isinstance(kind, type) and issubclass(kind, Row) else None


def sources(app: Any) -> list[Any]:
    """Drops modules without source, such as the compiled core, from the index of sources."""
    known = getattr(app.env, "_viewcode_modules", {})
    app.env._viewcode_modules = {name: source for name, source in known.items() if source}
    return []


def formula(writer: Any, node: Any) -> None:
    """Writes a formula as MathML, which browsers draw without a script or a network."""
    display = "block" if isinstance(node, docutils.nodes.math_block) else "inline"
    drawn = latex2mathml.converter.convert(node.astext(), display=display)
    writer.body.append(f"<div>{drawn}</div>" if display == "block" else drawn)
    raise docutils.nodes.SkipNode


def setup(app: Any) -> None:
    """Writes the pages of records before Sphinx looks for pages."""
    import sys
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).parent))
    import records

    records.write()
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-signature", signature)
    app.connect("html-collect-pages", sources, priority=100)
