"""The entry point that gathers the commands."""

from __future__ import annotations

import click

from xla_stalloc.cli.analyze import analyze
from xla_stalloc.cli.diff import diff
from xla_stalloc.cli.doctor import doctor
from xla_stalloc.cli.explain import explain
from xla_stalloc.cli.export import export
from xla_stalloc.cli.fit import fit
from xla_stalloc.cli.offload import offload
from xla_stalloc.cli.pack import pack
from xla_stalloc.cli.pipeline import pipeline
from xla_stalloc.cli.plan import plan
from xla_stalloc.cli.pool import pool
from xla_stalloc.cli.train import train
from xla_stalloc.cli.view import view


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="xla_stalloc")
def main() -> None:
    """Plan the memory of JAX programs ahead of time.

    Exit codes: 0 all is well, 1 a check failed, 2 the usage or the input is wrong.
    """


main.add_command(analyze)
main.add_command(diff)
main.add_command(doctor)
main.add_command(explain)
main.add_command(export)
main.add_command(fit)
main.add_command(offload)
main.add_command(pack)
main.add_command(pipeline)
main.add_command(plan)
main.add_command(pool)
main.add_command(train)
main.add_command(view)

if __name__ == "__main__":
    main()
