"""The files for Compose, systemd, Kubernetes and Grafana name flags, paths and metrics that exist."""

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from t2t_revival.addons.server.app import create_app
from t2t_revival.addons.server.metrics import Metrics
from t2t_revival.addons.server.requests import Limits
from t2t_revival.cli.server import main

DEPLOY = Path(__file__).parents[2] / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["server"]
KUBERNETES = list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))
POD = KUBERNETES[0]["spec"]["template"]["spec"]
SYSTEMD = ConfigParser(interpolation=None)
SYSTEMD.read(DEPLOY / "t2t-server.service")


@pytest.mark.parametrize(
    ("command", "grace", "host"),
    [
        (COMPOSE["command"], COMPOSE["stop_grace_period"].rstrip("s"), "0.0.0.0"),
        (POD["containers"][0]["command"], POD["terminationGracePeriodSeconds"], "0.0.0.0"),
        (shlex.split(SYSTEMD["Service"]["ExecStart"]), SYSTEMD["Service"]["TimeoutStopSec"], "127.0.0.1"),
    ],
)
def test_commands(command, grace, host):
    flags = main.parse(command)
    assert (Path(command[0]).name, flags.host, flags.port) == ("t2t-server", host, 8501)
    assert flags.saved_model
    assert int(grace) > Limits.timeout, "time to answer what has begun"


def test_probes_ask_for_paths_that_exist():
    server = POD["containers"][0]
    probes = [server[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
    assert {probe["port"] for probe in probes} == {server["ports"][0]["name"]}
    annotations = KUBERNETES[0]["spec"]["template"]["metadata"]["annotations"]
    check = re.search(r"http://localhost:8501(/\w+)", " ".join(COMPOSE["healthcheck"]["test"]))
    asked = {*(probe["path"] for probe in probes), annotations["prometheus.io/path"], check[1]}
    assert asked <= set(create_app({}).openapi()["paths"])


def test_metrics_exist():
    known = set(re.findall(r"^# TYPE (\w+)", Metrics().text().decode(), re.MULTILINE))
    asked = set(re.findall(r"\b(?:t2t|process)_\w+", (DEPLOY / "grafana.json").read_text()))
    (scaler,) = (one for one in KUBERNETES if one["kind"] == "HorizontalPodAutoscaler")
    asked |= {metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}
    assert len(asked) > 8
    assert {re.sub(r"_(bucket|count|sum)$", "", name) for name in asked} <= known
