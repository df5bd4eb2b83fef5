"""`%explain`, and what errors and notices say of it."""

from __future__ import annotations

from support.shells import Notebook

MARKDOWN = "text/markdown"


def test_the_page_of_an_error(notebook: Notebook) -> None:
    notebook.ok("%explain perspex.errors.TypePromotionError")
    (bundle,) = [bundle for bundle in notebook.displayed if MARKDOWN in bundle]
    assert bundle[MARKDOWN] == bundle["text/plain"]
    assert bundle[MARKDOWN].startswith("# `TypePromotionError`\n\nA kind of `ValueError`.")
    assert "```pycon\n>>> import perspex.numpy as jnp\n" in bundle[MARKDOWN]


def test_all_names(notebook: Notebook) -> None:
    notebook.ok("%explain")
    (bundle,) = [bundle for bundle in notebook.displayed if MARKDOWN in bundle]
    assert "* `stale`: " in bundle[MARKDOWN] and "* `SpmdError`: " in bundle[MARKDOWN]


def test_a_name_that_is_not_there(notebook: Notebook) -> None:
    notebook.run("%explain keyreus")
    assert "keyreuse?" in notebook.out


def test_an_error_names_its_page(notebook: Notebook) -> None:
    """The shell of this test has no front end that draws cards."""
    notebook.run("import perspex\nperspex.jit(lambda x: 1 if x > 0 else 2)(1.0)")
    assert "`%explain TracerBoolConversionError` says more." in notebook.out


def test_errors_of_python_name_none(notebook: Notebook) -> None:
    notebook.run("1 / 0")
    assert "%explain" not in notebook.out


def test_a_notice_names_its_page(notebook: Notebook) -> None:
    notebook.ok("from perspex import random\nkey = random.key(0)")
    notebook.ok("a = random.normal(key), random.normal(key)")
    kind = "application/vnd.perspex.keyreuse+json"
    (bundle,) = [bundle for bundle in notebook.displayed if kind in bundle]
    assert bundle["text/plain"].endswith("\n`%explain keyreuse` says more.")
    assert "<code>%explain keyreuse</code> says more." in bundle["text/html"]


def test_an_answer_names_its_page_where_the_mouse_rests(notebook: Notebook) -> None:
    notebook.ok("import perspex.numpy as jnp\nx = jnp.ones(3)")
    notebook.ok("%buffers")
    kind = "application/vnd.perspex.buffers+json"
    (bundle,) = [bundle for bundle in notebook.displayed if kind in bundle]
    assert "%explain" not in bundle["text/plain"]
    assert bundle["text/html"].startswith('<div title="%explain buffers says more.">')
