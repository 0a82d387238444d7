"""t2t-datagen in a process that reaches no host, since its proxy refuses all connections."""

import os
import socket
import subprocess
import sys

import pytest

SCRIPT = "from t2t_revival.cli.datagen import main; import sys; sys.exit(main())"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_source", "module", "host"),
    [
        ("hf:wmt/wmt14/de-en", "datasets", "http://hub.example"),
        ("wmt14", "tensorflow_datasets", "http://www.statmt.org"),
    ],
)
def test_a_source_out_of_reach_is_one_line_without_retries(data_source, module, host, tmp_path):
    pytest.importorskip(module)
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = f"http://127.0.0.1:{server.getsockname()[1]}"
    environment = {
        **{name: value for name, value in os.environ.items() if name.lower() != "no_proxy"},
        **dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), proxy),
        "HF_ENDPOINT": "http://hub.example",
        **dict.fromkeys(("HF_HOME", "TFDS_DATA_DIR"), str(tmp_path)),
    }
    flags = ["--problem=translate_ende", f"--data_source={data_source}", f"--data_dir={tmp_path / 'data'}"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *flags],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,  # TensorFlow Datasets alone would try for 204 seconds
    )
    assert done.returncode == 1
    *before, error = done.stderr.splitlines()
    assert before in (["reading the source"], ["starting TensorFlow", "reading the source"])
    assert "not on this machine, and nothing answers at http" in error
    assert host in error
