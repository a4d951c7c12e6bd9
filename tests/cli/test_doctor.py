"""`xla-stalloc doctor`, in processes of its own since it changes JAX's configuration."""

from __future__ import annotations

import json
import subprocess
import sys

import jax

PROGRAM = [sys.executable, "-c", "from xla_stalloc.cli.main import main; main()", "doctor"]
# Without a hook there is nothing that could call the planner.
WITHOUT_HOOK = """
from jax.extend import xla
def refuse(*_, **__): raise NotImplementedError("no hooks today")
xla.register_hlo_module_transformation = refuse
from xla_stalloc.cli.main import main
main()
"""


def test_every_lever_of_this_release_works_here() -> None:
    done = subprocess.run([*PROGRAM, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["schema"] == 1
    assert found["versions"]["jax"] == jax.__version__
    assert found["default_backend"] == "cpu"
    checks = {check["name"]: (check["works"], check["why"]) for check in found["checks"]}
    assert checks == {
        "compiler hook": (True, ""),
        "temporal lever": (True, ""),
        "persistent cache apart": (True, ""),
        "spatial lever": (True, ""),
        "arena lever": (False, "not in this version"),
    }


def test_a_missing_hook_is_found_and_explained() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_HOOK, "doctor"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "no hooks today" in done.stdout
    assert "compiler hook" in done.stdout


def test_an_unknown_backend_is_a_failed_check_and_no_traceback() -> None:
    code = "import os; os.environ['JAX_PLATFORMS'] = 'nonsense'; from xla_stalloc.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "doctor", "--json"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    found = json.loads(done.stdout)
    assert found["default_backend"] is None
    assert "nonsense" in found["checks"][0]["why"]
