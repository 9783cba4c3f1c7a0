"""``tfenv schema``"""

from __future__ import annotations

from pathlib import Path

import click

from tfenv.commands._common import emit, json_option


@click.command("schema")
@click.option("--output", type=click.Path(path_type=Path), help="Write it to this file.")
@json_option
def command(output: Path | None, as_json: bool) -> None:
    """Print or write the JSON Schema of matrix.yaml, so that editors complete and check it."""
    import json

    from tfenv.files import write_all
    from tfenv.schema import json_schema

    text = json_schema()
    if output:
        write_all(output.absolute().parent, {output.name: text})
        emit({"written": str(output)}, as_json=as_json, text=f"{output} written")
    else:
        emit(json.loads(text), as_json=as_json, text=text.rstrip())
