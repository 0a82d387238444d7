"""The files for Compose, systemd, Kubernetes and Grafana name flags, paths and metrics that exist."""

import json
import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from t2t_revival.cli.server import _check_flags, command_flags
from t2t_revival.server.app import create_app
from t2t_revival.server.metrics import Metrics
from t2t_revival.server.service import Limits

DEPLOY = Path(__file__).parents[2] / "deploy"


def documents(name):
    return list(yaml.safe_load_all((DEPLOY / name).read_text()))


def unit():
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(DEPLOY / "t2t-server.service")
    return parser["Service"]


def container():
    return documents("kubernetes.yaml")[0]["spec"]["template"]["spec"]


COMMANDS = {
    "compose": lambda: documents("compose.yaml")[0]["services"]["server"]["command"],
    "systemd": lambda: shlex.split(unit()["ExecStart"]),
    "kubernetes": lambda: container()["containers"][0]["command"],
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_commands(kind):
    command = COMMANDS[kind]()
    assert Path(command[0]).name == "t2t-server"
    values = command_flags()
    assert values(command) == [command[0]]
    _check_flags(values)
    assert values.port == 8501
    assert values.saved_model
    assert values.host == ("127.0.0.1" if kind == "systemd" else "0.0.0.0")


def test_a_server_has_time_to_answer_what_has_begun():
    times = [
        int(documents("compose.yaml")[0]["services"]["server"]["stop_grace_period"].rstrip("s")),
        int(unit()["TimeoutStopSec"]),
        container()["terminationGracePeriodSeconds"],
    ]
    assert min(times) > Limits.timeout


def test_probes_ask_for_paths_that_exist():
    paths = set(create_app({}).openapi()["paths"])
    server = container()["containers"][0]
    probes = [server[f"{kind}Probe"]["httpGet"] for kind in ("startup", "readiness", "liveness")]
    assert {probe["path"] for probe in probes} <= paths
    assert {probe["port"] for probe in probes} == {server["ports"][0]["name"]}
    annotations = documents("kubernetes.yaml")[0]["spec"]["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/path"] in paths
    check = " ".join(documents("compose.yaml")[0]["services"]["server"]["healthcheck"]["test"])
    assert re.search(r"http://localhost:8501(/\w+)", check)[1] in paths


def test_metrics_exist():
    metrics = Metrics()
    metrics.requests.labels("m", "predict", 200).inc()
    metrics.lines.labels("m").inc()
    metrics.latency.labels("m", "predict").observe(1)
    metrics.versions.labels("m").set(1)
    known = set(re.findall(r"^(\w+)[ {]", metrics.text().decode(), re.MULTILINE))
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    asked = {name for text in expressions for name in re.findall(r"\b(?:t2t|process)_\w+", text)}
    (scaler,) = (one for one in documents("kubernetes.yaml") if one["kind"] == "HorizontalPodAutoscaler")
    asked |= {metric["pods"]["metric"]["name"] for metric in scaler["spec"]["metrics"]}
    assert len(asked) > 8
    assert asked <= known


def test_panels_do_not_overlap():
    panels = json.loads((DEPLOY / "grafana.json").read_text())["panels"]
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
