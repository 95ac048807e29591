"""The command ``schema``."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON Schema of study files."""
    import json

    from nqbench.study import schema as study_schema

    typer.echo(json.dumps(study_schema(), indent=2))
