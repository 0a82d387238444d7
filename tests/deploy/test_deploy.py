"""The file for Compose names flags and paths that exist."""

import re
from pathlib import Path

import yaml

from t2t_revival.addons.server.app import create_app
from t2t_revival.addons.server.requests import Limits
from t2t_revival.cli.server import main

FILE = Path(__file__).parents[2] / "deploy" / "compose.yaml"
COMPOSE = yaml.safe_load(FILE.read_text())["services"]["server"]


def test_the_command_and_the_check_of_health():
    flags = main.parse(COMPOSE["command"])
    assert (Path(COMPOSE["command"][0]).name, flags.host, flags.port) == ("t2t-server", "0.0.0.0", 8501)
    assert flags.saved_model
    assert int(COMPOSE["stop_grace_period"].rstrip("s")) > Limits.timeout, "time to answer what has begun"
    check = re.search(r"http://localhost:8501(/\w+)", " ".join(COMPOSE["healthcheck"]["test"]))
    assert check[1] in create_app({}).openapi()["paths"]
