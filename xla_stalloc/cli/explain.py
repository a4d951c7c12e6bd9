"""`xla-stalloc explain`: an out-of-memory error in words, with what to change."""

from __future__ import annotations

import sys

import click


@click.command()
@click.argument("log", default="-", metavar="[LOG|-]")
@click.option("--dump", help="What was compiled: a dump folder, or whatever `analyze` takes.")
@click.option("--json", "as_json", is_flag=True, help="Print one line of JSON instead of text.")
def explain(log: str, dump: str | None, as_json: bool) -> None:
    """Explain an out-of-memory error of XLA's, from its text or from the log around it.

    LOG is a file, or - for what is piped or pasted in. It says which program failed, what was asked for, what was
    resident, the largest block, and what to change. With --dump, the program's peak and the advice of `analyze` too.
    """
    from xla_stalloc.hlo import HloError
    from xla_stalloc.report.analyze import analyze
    from xla_stalloc.report.oom.explain import NotUnderstood
    from xla_stalloc.report.oom.explain import explain as explained

    try:
        with click.open_file(log, "rb") as file:
            text = file.read().decode(errors="replace")  # logs hold anything
        found = explained(text, analyze(dump).modules if dump else ())
    except OSError as error:
        click.echo(f"Error: {log}: cannot be read: {error.strerror or error}", err=True)
        sys.exit(2)
    except (HloError, NotUnderstood) as error:
        click.echo(f"Error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    click.echo(found.to_json() if as_json else found.to_text(), nl=as_json)
