"""How `make site` makes the documentation site: all of `docs/` and the pages next to it, for reading offline.

The source of the site is the whole clone, so that links to CONTRIBUTING or LICENSE are links like any other. Pages are
plain Markdown; what Sphinx has to be taught for them is in `hooks/`.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

ALIASES = (
    "Arm",
    "ArrayLike",
    "Bool",
    "Context",
    "Contexts",
    "Float64",
    "Int64",
    "Normalize",
    "Objective",
    "PoolLike",
    "RidgeLike",
    "SourceLike",
    "Units",
)

project = "Armlet"
author = "The Armlet developers"
copyright = author  # noqa: A001 - Sphinx asks for it by this name
release = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]["version"]

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_codeautolink",
    "hooks.cells",
    "hooks.commands",
    "hooks.contents",
    "hooks.downloads",
    "hooks.figures",
    "hooks.plain",
    "hooks.reference",
    "hooks.signatures",
    "hooks.mathml",
]
root_doc = "docs/index"
include_patterns = ["docs/**", "*.md"]
exclude_patterns = ["docs/hooks", ".*", "build", "results", "src", "tests", "kernel", "benchmarks", "examples", "dist"]

default_role = "code"
nitpick_ignore_regex = [
    ("py:.*", r"(?!armlet\.).*"),  # types of others: without a network there is nothing to link to
    ("py:.*", r"armlet\.(core|_kernel|\w+\.\w+)\..*"),  # types from within, which no page has
    ("py:class", r"armlet\.\w+\.(StateT|T|R|EitherBandit)"),  # variables of types
]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_in_temp = True
nb_execution_timeout = 240
nb_merge_streams = True

autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_type_aliases = {name: name for name in ALIASES} | {"npt.ArrayLike": "ArrayLike"}
autosummary_generate = False
numpydoc_show_class_members = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

codeautolink_concat_default = True

html_theme = "furo"
html_title = f"Armlet {release}"
html_math_renderer = "mathml"
html_static_path = ["hooks/static"]
html_extra_path = ["hooks/root"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
smartquotes = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6e69", "color-brand-content": "#0b6e69"},
    "dark_css_variables": {"color-brand-primary": "#5cc8bf", "color-brand-content": "#5cc8bf"},
}
copybutton_prompt_text = r">>> |\.\.\. ?|\$ "
copybutton_prompt_is_regexp = True
