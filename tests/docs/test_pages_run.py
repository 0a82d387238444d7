"""Pages whose code and commands run as they stand, in their order, at a small scale."""

import functools
import glob
import http.server
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import keras
import numpy as np
import pytest
from huggingface_hub import constants

from t2t_revival import registry
from tests.support import bergamot
from tests.support.command_lines import last_of_each
from tests.support.commands import run
from tests.support.hub import in_cache
from tests.support.line_corpus import write_corpus
from tests.support.m2m100_models import write_multilingual

DOCS = Path(__file__).parents[2] / "docs"
SMALL = "num_hidden_layers=1,hidden_size=16,filter_size=16,num_heads=2,batch_size=256"
FEWER = {  # flags besides those of a page
    "t2t-datagen": ["--vocab_size=330"],
    "t2t-trainer": ["--train_steps=4", "--local_eval_frequency=2", "--eval_bleu_sentences=4"],
    "t2t-eval": ["--eval_bleu_sentences=4"],
}
pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def few_pairs(tmp_path, monkeypatch, few_sample_sentences):
    monkeypatch.chdir(tmp_path)
    few_sample_sentences(train=300, dev=8, test=8)


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def run_commands(
    page: str, fewer: dict[str, list[str]], small: str = SMALL
) -> list[subprocess.CompletedProcess]:
    """Runs the commands of a page; those that train have a smaller model and fewer updates."""
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    done = []
    for command, *flags in map(shlex.split, lines):
        if not command.startswith("t2t-"):
            continue
        if command == "t2t-trainer":
            hparams = [small, *(flag.partition("=")[2] for flag in flags if flag.startswith("--hparams="))]
            flags.append(f"--hparams={','.join(hparams)}")
        flags = [word for flag in flags for word in glob.glob(flag) or [flag]]
        done.append(run(command, *last_of_each([*flags, *fewer.get(command, ())])))
    return done


@pytest.mark.nightly
def test_in_keras_alone(tmp_path):
    keras.utils.set_random_seed(1)
    code = blocks("guides/in_keras.md", "python")
    assert len(code) == 7
    names = {}
    exec("\n".join(code), names)
    losses = names["history"].history["loss"]
    assert losses[-1] < 0.9 * losses[0]
    assert 1.0 < names["paper"].history["loss"][0] < np.log(12)  # a mean over tokens, as the page says
    accuracies = names["history"].history["sparse_categorical_accuracy"]
    assert accuracies[-1] > accuracies[0]
    assert np.stack(names["outputs"]).shape == (7, 4)
    assert tuple(names["weights"].encoder_decoder.shape) == (1, 2, 4, 7, 7)
    assert {path.name for path in tmp_path.iterdir()} == {"reverse.keras", "classifier.keras"}


def test_from_python():
    *code, export = blocks("python.md", "python")
    faster = {
        "train_steps=300": f"train_steps=2,{SMALL}",
        "beam_size=8,alpha=0.6": "beam_size=2,extra_length=3",
    }
    text, names = "\n".join(code), {}
    for slow, fast in faster.items():
        assert slow in text
        text = text.replace(slow, fast)
    exec(text, names)
    assert "Dackel" in names["outputs"][0][0].text
    assert names["scores"][0].log_prob < 0
    run_commands("python.md", {})
    exec(export, names)
    assert {"score", "serving_default"} <= {*names["model"].signatures}


@pytest.mark.nightly
def test_the_package_that_is_ported_from_tensor2tensor(tmp_path):
    (code,) = blocks("../t2t_revival/from_tensor2tensor.md", "python")
    package, poems = tmp_path / "usr_poetry", tmp_path / "poems.txt"
    package.mkdir()
    (package / "__init__.py").write_text(code, encoding="utf-8")
    lines = "Poem {0} begins in the morning,\nit walks {0} miles till noon,\nit rests\nand ends too soon."
    poems.write_text("\n\n".join(map(lines.format, range(30))) + "\n")
    flags = [f"--t2t_usr_dir={package}", "--problem=poetry_lines", "--data_dir=data"]
    assert (
        f"source      {poems} (inputs to targets)"
        in run("t2t-datagen", *flags, f"--data_source={poems}").stdout
    )
    problem = registry.problem("poetry_lines")
    dev = list(problem.open("data").text("dev"))
    assert (len(dev), len(list(problem.open("data").text("train")))) == (9, 81)
    assert dev[3] == ("Poem 10 begins in the morning,", "it walks 10 miles till noon,")
    small = [f"--hparams={SMALL},max_length=64", "--train_steps=1", "--eval_bleu_sentences=0"]
    run("t2t-trainer", *flags, "--output_dir=out", "--hparams_set=transformer_poetry", *small)
    assert Path("out/model.ckpt-1.npz").exists()
    hparams = registry.hparams("transformer_poetry")
    assert (hparams.hidden_size, hparams.num_heads, hparams.layer_prepostprocess_dropout) == (128, 4, 0.6)


@pytest.mark.nightly
def test_several_corpora(tmp_path):
    (listed,) = blocks("guides/mixing.md", "yaml")
    Path("corpora.yaml").write_text(listed)
    for name, pairs in (("news", 300), ("talks", 100), ("back", 1200)):
        write_corpus(tmp_path / name, train=pairs)
    for path in Path("back").glob("dev.*"):
        path.unlink()
    Path("input.txt").write_text("the dog sees a house\n\n")
    datagen, _, evaluation, tagged, _, _ = run_commands("guides/mixing.md", FEWER)
    assert re.search(r"train +news +75.0% +300", datagen.stdout)
    assert re.search(r"train +talks +25.0% +100", datagen.stdout)
    assert "bleu/news  bleu/talks" in evaluation.stdout
    assert re.search(r"train +back +25.0% +1,000", tagged.stdout)
    assert not re.search(r"dev +back", tagged.stdout)
    outputs = Path("output.txt").read_text().splitlines()
    assert len(outputs) == 2
    assert outputs[1] == ""


@pytest.mark.nightly
def test_your_domain_from_a_general_model():
    (script,) = blocks("your_domain.md", "python")
    subprocess.run([sys.executable, "-"], input=script, text=True, check=True)
    done = run_commands("your_domain.md", {"t2t-trainer": FEWER["t2t-trainer"]})
    assert len(done) == 9
    progress = "".join(process.stderr for process in done)
    assert re.search(r"starting with the weights of .*general.* new pieces", progress)
    assert "bleu/general" in progress
    assert len(Path("both.de").read_text().splitlines()) == 80
    assert list(Path("both/export").glob("[0-9]*/saved_model.pb"))


@pytest.mark.nightly
def test_from_opus_mt_to_a_browser(tmp_path, chromium):
    """The page that is exported translates by itself: what it shows is what the engine makes under node."""
    (script,) = blocks("your_domain.md", "python")
    subprocess.run([sys.executable, "-"], input=script, text=True, check=True)
    sizes = "hidden_size=64,filter_size=64,num_heads=2"
    few = {
        "t2t-trainer": ["--train_steps=80", "--local_eval_frequency=80"],  # so that outputs are not empty
        "t2t-distill": [
            "--train_steps=2",
            "--local_eval_frequency=2",
            f"--hparams={sizes},num_encoder_layers=1",
        ],
    }
    done = run_commands("browser.md", few, small="num_hidden_layers=1,batch_size=256")
    assert re.search(r"starting with the weights of .*opus.* \d+ new pieces", done[5].stderr)
    (folder,) = Path("student/bergamot").iterdir()
    engine = bergamot.library(folder)
    line = "Please deliver two pretzels on Friday."
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}")
        page.wait_for_function("document.getElementById('state').textContent.startsWith('en to de')")
        page.context.set_offline(True)
        page.fill("#source", line)
        page.wait_for_function("document.getElementById('target').value")
        shown = page.eval_on_selector("#target", "element => element.value")
        server.shutdown()
    assert bergamot.translate(engine, folder, [line]) == [shown]


@pytest.mark.nightly
def test_from_many_languages_to_one_pair(tmp_path, monkeypatch):
    """The model of the hub is a small one of random weights."""
    (script,) = blocks("your_domain.md", "python")
    subprocess.run([sys.executable, "-"], input=script, text=True, check=True)
    lines = [line for part in ("en", "de") for line in Path(f"orders/train.{part}").read_text().splitlines()]
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    write_multilingual(in_cache(tmp_path / "hub", "facebook/m2m100_418M"), lines=lines)
    few = {
        "t2t-trainer": ["--train_steps=2", "--local_eval_frequency=2"],
        "t2t-distill": [
            "--train_steps=2",
            "--local_eval_frequency=2",
            "--hparams=hidden_size=64,filter_size=64",
        ],
    }
    done = run_commands("one_pair.md", few, small="batch_size=1024")
    assert "kept " in done[0].stdout
    assert len(Path("m2m.de").read_text().splitlines()) == 80
    assert list(Path("tuned/transformers").glob("*/model.safetensors"))
    assert list(Path("student/ctranslate2").glob("*/model.bin"))
