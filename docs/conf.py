"""The site: `make docs` builds it in build/docs. Every example in it runs while it is built."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import matplotlib  # noqa: E402

import kofa  # noqa: E402

matplotlib.use("agg")
# An example that warns would show it to every reader.
warnings.filterwarnings("error", module="kofa")

project = "kofa"
author = "The kofa developers"
project_copyright = author
version = release = kofa.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "kofa_reference",
]
root_doc = "index"
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
# Sources of the galleries, whose pages are in generated/.
exclude_patterns = [
    "start/GALLERY_HEADER.rst",
    "generated/start/index.rst",  # start/index.md has its pages, and that of the shell
    "tutorials",
    "gallery",
    "_ext",
    "_templates",
]
templates_path = ["_templates"]
highlight_language = "text"  # formulas stand in indented blocks
pygments_style = "default"

# Every reference must lead somewhere; but words in single backticks of docstrings may also be
# parameters, and types are those of libraries that are not part of this site.
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
default_role = "py:obj"

suppress_warnings = ["myst.header"]  # the paper's tables begin with a title of the second level
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": ["start", "tutorials", "gallery"],
    "gallery_dirs": ["generated/start", "generated/tutorials", "generated/gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("kofa",),
    "exclude_implicit_doc": {"kofa.FactorModel.fit"},
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "capture_repr": ("_repr_html_", "__repr__"),
    "ignore_repr_types": r".*matplotlib",
    "download_all_examples": False,
    "show_signature": False,
    "show_memory": False,
    "min_reported_time": 3600,  # seconds say more about the machine
    "write_computation_times": False,
    "remove_config_comments": True,
    "reset_modules": ("matplotlib",),
    "plot_gallery": "True",
}

copybutton_prompt_text = r"^\$ |^>>> |^\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

html_theme = "pydata_sphinx_theme"
html_title = "kofa"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["kofa.css"]
# Pages that stand alone have no others to list beside them.
ALONE = ("concepts/index", "method", "equations", "benchmarks", "project/security")
WIDE = ("howto/from_mofa", "howto/from_scikit_learn", "howto/from_mixomics")
html_sidebars = {page: [] for page in ALONE}
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_copy_source = False
html_theme_options = {
    "logo": {"text": "kofa"},
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    # Tables for users of other tools have three columns of code, which need the place.
    "secondary_sidebar_items": {"**": ["page-toc"], **{page: [] for page in WIDE}},
}
