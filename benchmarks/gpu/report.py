"""Tables of a session's figures."""

from __future__ import annotations

from statistics import median

from gpu.record import Line, Record

TERA, GIB, MILLION = 1e12, 2**30, 1e6


def report(record: Record) -> str:
    """Returns all figures in Markdown."""
    parts = [_title(record), _speeds(record), _comparisons(record), _trainings(record)]
    return "\n\n".join(filter(None, parts))


def _title(record: Record) -> str:
    ceiling = record.find("ceiling") or {}
    if "flops" not in ceiling:
        return ""
    measured = [line for line in record.all("speed") if "failed" not in line]
    names = dict.fromkeys(line["name"] for line in measured)
    low, high = min(ceiling["speeds"]) / TERA, max(ceiling["speeds"]) / TERA
    return (
        f"{'; '.join([ceiling['device'], *names])}.\n"
        f"A product of bfloat16 matrices: {ceiling['flops'] / TERA:,.1f} TFLOP/s ({low:,.1f}-{high:,.1f})."
    )


def _speeds(record: Record) -> str:
    rows = []
    for line in record.all("speed"):
        name = [line["size"], line["contestant"], f"{line['tokens']:,}"]
        if "failed" in line:
            rows.append([*name, line["failed"].replace("|", "/"), "", "", "", ""])
            continue
        of_model = record.all("speed", size=line["size"], contestant=line["contestant"])
        is_best = all(line["tokens_per_second"] >= other.get("tokens_per_second", 0) for other in of_model)
        share = "" if line["share"] is None else f"{line['share']:.1%}"
        memory = "" if line["peak_memory"] is None else f"{line['peak_memory'] / GIB:,.1f}"
        figures = f"{line['flops'] / TERA:,.1f}", share, memory, f"{line['compiling']:,.0f}"
        rows.append([*name, spread(line["speeds"]) + (" best" if is_best else ""), *figures])
    heads = (
        "model",
        "step",
        "tokens of a batch",
        "target tokens/s",
        "TFLOP/s",
        "of the product",
        "peak GiB",
        "s to compile",
    )
    return table(heads, rows)


def _comparisons(record: Record) -> str:
    rows = []
    for line in record.all("compare"):
        if "failed" in line:
            rows.append([line["size"], "", "", line["failed"].replace("|", "/"), ""])
            continue
        for contestant, speeds in line["speeds"].items():
            ratio = spread(line["ratios"], 2) if contestant == line["better"] else ""
            tokens = f"{line['tokens'][contestant]:,}"
            rows.append([line["size"], contestant, tokens, spread(speeds), ratio])
    return table(("model", "in turns", "tokens of a batch", "target tokens/s", "ours by the better"), rows)


def _trainings(record: Record) -> str:
    rows = []
    for line in record.lines:
        if line["piece"] not in ("train", "score"):
            continue
        last = line.get("last", {})
        figures = [f"{last[name] / unit:,.1f}" if name in last else "" for name, unit in TOTALS]
        scores = line.get("failed") or _bleu(line) or _dev(line)
        rows.append(
            [line["piece"], f"{line['seconds']:,.0f}", f"{last.get('step', 0):,.0f}", *figures, scores]
        )
    return table(("", "s", "step", "million target tokens", "minutes", "scores"), rows)


TOTALS = (("target_tokens", MILLION), ("seconds", 60.0))


def _bleu(line: Line) -> str:
    """Returns sacreBLEU's cased score of a text, without its signature."""
    found = [text for text in line.get("bleu", []) if text.startswith("BLEU_cased")]
    return " ".join(found[0].split()[:3]) if found else ""


def _dev(line: Line) -> str:
    """Returns the last dev scores of a training."""
    rows = line.get("dev", [])
    if not rows:
        return ""
    scores = {name: rows[-1][name] for name in ("loss", "bleu") if name in rows[-1]}
    return f"dev at step {rows[-1]['step']:,.0f}: " + ", ".join(f"{k} {v:.4g}" for k, v in scores.items())


def spread(values: list[float], digits: int = 0) -> str:
    """Returns the median and the extremes."""
    low, middle, high = min(values), median(values), max(values)
    return f"{middle:,.{digits}f} ({low:,.{digits}f}-{high:,.{digits}f})"


def table(heads: tuple[str, ...], rows: list[list[str]]) -> str:
    """Returns a table in Markdown; nothing without rows."""
    if not rows:
        return ""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])
