"""Writes `schema.json`, the JSON schema of the messages, from the types of `contract`.

It imports nothing of Perspex but these types, because the build runs it by itself.

    python -m perspex_magics.panel.schema    # writes schema.json
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec

from . import contract, rows, widgets

SCHEMA = Path(__file__).with_name("schema.json")
# Types that are no classes, by name; `Topic` is one of some texts, the others are unions of types.
_NAMED: dict[str, Any] = {
    "Ask": contract.Ask,
    "FromKernel": contract.FromKernel,
    "FromPanel": contract.FromPanel,
    "Row": rows.AnyRow,
    "Topic": contract.Topic,
}


def schema() -> dict[str, Any]:
    """The JSON schema of all messages, with a definition for each type."""
    said = {
        kind: None
        for union in (contract.FromPanel, contract.FromKernel)
        for kind in get_args(union)
    }
    types = [contract.Topic, *said, *_WIDGETS]
    _, definitions = msgspec.json.schema_components(types, ref_template=_REF)
    for made in definitions.values():
        made.pop("title", None)
        made["description"] = " ".join(made.get("description", "").split())
        made["additionalProperties"] = False
        for one in made["properties"].values():
            one.pop("default", None)
        if "number" in made["properties"]:
            made["required"] = ["number", *made["required"]]
    for name, kinds in _NAMED.items():
        members = [kind.__name__ for kind in get_args(kinds) if kind not in contract.TOPICS]
        definitions[name] = (
            {"anyOf": [{"$ref": _REF.format(name=member)} for member in members]}
            if members
            else {"enum": list(contract.TOPICS)}
        )
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": f"https://perspex.invalid/panel/{contract.VERSION}",
        "title": "PanelMessages",
        "description": " ".join((contract.__doc__ or "").split("\n\n")[0].split()),
        "constants": {
            "TARGET": contract.TARGET,
            "VERSION": contract.VERSION,
            "TOPICS": list(contract.TOPICS),
        },
        "type": "object",
        "properties": {
            name[0].lower() + name[1:]: {"$ref": _REF.format(name=name)}
            for name in (*_NAMED, *(kind.__name__ for kind in _WIDGETS))
        },
        "additionalProperties": False,
        "definitions": {name: _named(made) for name, made in sorted(definitions.items())},
    }


_REF = "#/definitions/{name}"
# The data of widgets.
_WIDGETS = (widgets.Timings, widgets.KeyTree, widgets.KeyDetail)


def _named(made: Any) -> Any:
    """Part of a schema in which topics and rows are named instead of spelled out."""
    if isinstance(made, list):
        return [_named(item) for item in made]
    if not isinstance(made, dict):
        return made
    if "discriminator" in made:
        return {"$ref": _REF.format(name="Row")}
    if made.get("items") == {"enum": sorted(contract.TOPICS)} or made.get("topic"):
        return {**made, "items": {"$ref": _REF.format(name="Topic")}}
    return {key: _named(value) for key, value in made.items()}


def schema_text() -> str:
    """The contents of `schema.json`."""
    return json.dumps(schema(), indent=2) + "\n"


if __name__ == "__main__":
    # Only when it differs: what was made from it stays newer than it.
    if not SCHEMA.exists() or SCHEMA.read_text(encoding="utf-8") != schema_text():
        SCHEMA.write_text(schema_text(), encoding="utf-8")
