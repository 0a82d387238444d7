"""t2t-server, and TensorFlow Serving where it is installed, answer alike, as its documentation says."""

import json
import re
import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress

import pytest
import requests

from t2t_revival.addons.lexical.tables import NO_PHRASES
from t2t_revival.cli import decoder, query_server
from t2t_revival.serving.folder_model import FolderModel
from tests.cli.served import Server

HOST = "127.0.0.1"
BINARY = shutil.which("tensorflow_model_server")
NAME = "translate_ende"
LINES = "the dog\n\nder Hund sieht 3 Häuser 🦓\na\0b \u202e\n" + "x " * 5000
OPTIONS = {"beam_size": 3, "alpha": 0.6, "extra_length": 3, "n": 2}
START_SECS = 120
SERVERS = [
    "t2t-server",
    pytest.param(
        "tensorflow_model_server",
        marks=pytest.mark.skipif(not BINARY, reason="tensorflow_model_server is not on PATH"),
    ),
]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=SERVERS)
def addresses(request, export_dir, tmp_path_factory):
    """The server's addresses, that of REST first."""
    folder = tmp_path_factory.mktemp("log")
    if request.param == "t2t-server":
        server = Server(folder, f"--saved_model={export_dir}")
        yield [server.address]
        server.process.send_signal(signal.SIGTERM)
        server.process.wait()
        return
    with socket.create_server((HOST, 0)) as one, socket.create_server((HOST, 0)) as other:
        rest, grpc = one.getsockname()[1], other.getsockname()[1]
    flags = [f"--port={grpc}", f"--rest_api_port={rest}", f"--model_name={NAME}", "--enable_batching"]
    places = [
        f"--model_base_path={export_dir}",
        f"--batching_parameters_file={export_dir}/batching_parameters.txt",
    ]
    with (folder / "log").open("wb") as file:
        process = subprocess.Popen([BINARY, *flags, *places], stdout=file, stderr=file)
    try:
        wait_until_ready(f"http://{HOST}:{rest}/v1/models/{NAME}", process, folder / "log")
        yield [f"http://{HOST}:{rest}", f"{HOST}:{grpc}"]
    finally:
        process.terminate()
        process.wait(60)


@pytest.fixture
def rest(addresses):
    return f"{addresses[0]}/v1/models/{NAME}"


def wait_until_ready(url, process, log):
    """Waits until a model's state is AVAILABLE."""
    ends = time.monotonic() + START_SECS
    while time.monotonic() < ends and process.poll() is None:
        with suppress(requests.RequestException):
            if "AVAILABLE" in requests.get(url, timeout=5).text:
                return
        time.sleep(0.2)
    pytest.fail(f"the server is not ready: {log.read_text(errors='replace')[-2000:]}")


def predict(rest, **request):
    response = requests.post(f"{rest}:predict", json=request, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


def test_answers_are_those_of_the_decoder(addresses, trained, tmp_path):
    (tmp_path / "in").write_text(LINES)
    flags = [
        "--decode_hparams=beam_size=3,extra_length=3,return_beams=True",
        f"--decode_from_file={tmp_path / 'in'}",
    ]
    decoder.main(
        ["t2t-decoder", f"--output_dir={trained / 'out'}", *flags, f"--decode_to_file={tmp_path / 'd'}"]
    )
    for address in addresses:
        asked = ["t2t-query-server", f"--server={address}", f"--decode_to_file={tmp_path / 'o'}", *flags]
        assert query_server.main([*asked, f"--servable_name={NAME}"]) == 0
        served, decoded = (
            [line.split("\t") for line in (tmp_path / name).read_text().split("\n")] for name in "od"
        )
        assert [texts[0] for texts in served] == [texts[0] for texts in decoded]
        for texts, ours in zip(served, decoded, strict=True):  # which further outputs of the search fill
            assert list(filter(None, texts)) == list(filter(None, ours))[: sum(map(bool, texts))]
        assert query_server.main([*asked, "--servable_name=other"]) == 1


def test_phrases_are_those_of_the_decoder(addresses, trained, export_dir, tmp_path):
    """By commands, of a server and of the exported folder, and by `/translate`."""
    lines = [
        {"text": "the dog", "constraints": ["Hund sieht"], "avoid": ["e"]},
        {"text": "houses"},
        {"text": "the dog sees 3 houses", "terms": {"dog": "Hund", "houses": "Häuser"}},
        {"text": "", "constraints": ["Hund"]},
    ]
    (tmp_path / "in").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    flags = [
        "--decode_hparams=beam_size=3,extra_length=12",
        f"--decode_from_file={tmp_path / 'in'}",
        *("--input_format=jsonl", "--output_format=jsonl"),
    ]

    def answers(main, *more):
        assert main(["t2t", *flags, *more, f"--decode_to_file={tmp_path / 'o'}"]) == 0
        found = [json.loads(line) for line in (tmp_path / "o").read_text().splitlines()]
        return [one | {"score": pytest.approx(one["score"], abs=1e-3)} for one in found]

    expected = answers(decoder.main, f"--output_dir={trained / 'out'}")
    for place in (f"--saved_model={export_dir}", *(f"--server={address}" for address in addresses)):
        name = [f"--servable_name={NAME}"] * place.startswith("--server")
        assert answers(query_server.main, place, *name) == expected
    if len(addresses) == 1:
        for line, one in zip(lines, expected, strict=True):
            options = {"beam_size": 3, "extra_length": 12, **{k: line[k] for k in line if k != "text"}}
            request = {"text": line["text"], "options": options}
            (answer,) = requests.post(f"{addresses[0]}/translate", json=request, timeout=60).json()[
                "translations"
            ]
            assert (answer["text"], answer["score"]) == (one["text"], one["score"])


@pytest.mark.parametrize(
    ("settings", "lines", "options"),
    [
        ("", ["the dog\tder Hund", "houses\t"], {"prefix": "der Hund"}),
        (",mbr=chrf,candidates=4", ["the dog", "houses"], {"mbr": "chrf", "candidates": 4}),
    ],
)
def test_what_only_the_decoder_had(addresses, trained, tmp_path, settings, lines, options):
    """Forced beginnings, and the candidate that is most like the others."""
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines))
    flags = [
        f"--decode_hparams=beam_size=3,extra_length=3{settings}",
        *["--partial_targets"] * ("prefix" in options),
        f"--decode_from_file={tmp_path / 'in'}",
        f"--decode_to_file={tmp_path / 'o'}",
    ]
    assert decoder.main(["t2t-decoder", f"--output_dir={trained / 'out'}", *flags]) == 0
    expected = (tmp_path / "o").read_text()
    asked = [f"--server={addresses[0]}", f"--servable_name={NAME}", *flags]
    assert query_server.main(["t2t-query-server", *asked]) == 0
    assert (tmp_path / "o").read_text() == expected
    options = {"beam_size": 3, "extra_length": 3, **options}
    request = {"text": lines[0].partition("\t")[0], "options": options}
    if len(addresses) == 1:
        (answer,) = requests.post(f"{addresses[0]}/translate", json=request, timeout=60).json()[
            "translations"
        ]
        assert answer["text"] == expected.splitlines()[0]


VALUES = {
    "targets": "the",
    "alternatives": 2,
    "tables": NO_PHRASES,
    "prefixes": "der",
    "random_seed": 1,
} | OPTIONS
VALUES |= {"sampling_temp": 0.9, "sampling_keep_top_k": -1}
SIGNATURES = ["serving_default", "translate_with_options", "translate_with_sampling"]
SIGNATURES += ["translate_with_tables", "translate_with_prefixes", "describe", "score"]


def plain(value):
    """Returns what an exported model returns as JSON has it."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.decode() if isinstance(value, bytes) else pytest.approx(value, abs=1e-4)


@pytest.mark.parametrize("signature", SIGNATURES)
def test_every_signature_answers_as_the_exported_model(rest, export_dir, signature):
    model = FolderModel(export_dir)
    assert {*model.signature_defs} == {*SIGNATURES}
    lines = ["the dog", "houses", ""]
    names = [name for name in model.signature_defs[signature].inputs if name != "inputs"]
    inputs = {"inputs": lines, **{name: [VALUES[name]] * 3 for name in names}}
    expected = {name: plain(values) for name, values in model.predict(signature, inputs).items()}
    model.close()
    assert predict(rest, signature_name=signature, inputs=inputs)["outputs"] == expected
    instances = [dict(zip(inputs, row, strict=True)) for row in zip(*inputs.values(), strict=True)]
    rows = predict(rest, signature_name=signature, instances=instances)["predictions"]
    assert {name: [row[name] for row in rows] for name in rows[0]} == expected


def test_a_version(rest, export_dir):
    (number,) = (path.name for path in export_dir.iterdir() if path.name.isdecimal())
    expected = predict(rest, instances=["the dog"])
    assert (
        predict(f"{rest}/versions/{number}", instances=["the dog"])["predictions"][0]["outputs"]
        == (expected["predictions"][0]["outputs"])
    )
    (status,) = requests.get(rest, timeout=60).json()["model_version_status"]
    assert status == {
        "version": number,
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    }
    assert requests.get(f"{rest}/versions/{number}", timeout=60).json() == {"model_version_status": [status]}


def test_metadata(rest):
    answer = requests.get(f"{rest}/metadata", timeout=60).json()
    assert answer["model_spec"]["name"] == NAME
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    assert set(signatures) >= {"serving_default", "translate_with_options"}
    inputs = signatures["translate_with_options"]["inputs"]
    assert {name: entry["dtype"] for name, entry in inputs.items()} == {
        "inputs": "DT_STRING",
        "beam_size": "DT_INT32",
        "alpha": "DT_FLOAT",
        "extra_length": "DT_INT32",
        "n": "DT_INT32",
    }


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (":predict", "{", 400),
        (":predict", "[]", 400),
        (":predict", "{}", 400),
        (":predict", '{"instances": [], "inputs": []}', 400),
        (":predict", '{"instances": [1]}', 400),
        (":predict", '{"instances": ["a"], "signature_name": "none"}', 400),
        (":predict", '{"instances": ["a"], "signature_name": "translate_with_options"}', 400),
        ("/versions/1:predict", '{"instances": ["a"]}', 404),
        ("/labels/none:predict", '{"instances": ["a"]}', 400),
    ],
)
def test_errors(rest, path, body, status):
    response = requests.post(rest + path, data=body, timeout=60)
    assert response.status_code == status
    assert re.search(r"\w", response.json()["error"])


def test_an_unknown_model(addresses):
    url = f"{addresses[0]}/v1/models/other"
    assert requests.get(url, timeout=60).status_code == 404
    assert requests.post(f"{url}:predict", json={"instances": ["a"]}, timeout=60).status_code == 404
