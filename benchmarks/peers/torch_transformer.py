"""Contestant: a plain PyTorch training step around `torch.nn.Transformer`."""

from __future__ import annotations

import itertools
import math
from typing import Any, TypeAlias

import numpy as np
import torch
from batches import PAD, Batch
from contestant import Config, Contestant, serve
from torch import Tensor, nn
from torch.nn import functional

Pair: TypeAlias = tuple[Tensor, Tensor]  # ids of inputs and of targets
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def positions(length: int, channels: int) -> Tensor:
    """Returns the paper's sinusoids, [length, channels]."""
    rates = torch.exp(torch.arange(0, channels, 2) * (-math.log(10000.0) / channels))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class Model(nn.Module):
    """Embeddings tied with the softmax, sinusoids, `nn.Transformer` (post-norm)."""

    positions: Tensor

    def __init__(self, config: Config) -> None:
        super().__init__()
        size = config.hidden_size
        self.embedding = nn.Embedding(config.vocab_size, size)
        self.transformer = nn.Transformer(
            size,
            config.heads,
            config.layers,
            config.layers,
            config.filter_size,
            config.dropout,
            batch_first=True,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("positions", positions(config.max_length, size))
        for weight in self.transformer.parameters():
            if weight.dim() > 1:
                nn.init.xavier_uniform_(weight)
        nn.init.normal_(self.embedding.weight, std=size**-0.5)
        for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
            layer.dropout.p = config.inner_dropout
            layer.self_attn.dropout = config.inner_dropout
            if hasattr(layer, "multihead_attn"):
                layer.multihead_attn.dropout = config.inner_dropout

    def embed(self, ids: Tensor) -> Tensor:
        """Embeds ids [batch, length] as [batch, length, channels]."""
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.dropout(x + self.positions[: ids.shape[1]])

    def forward(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Maps ids [batch, source] and [batch, target] to logits [batch, target, vocab]."""
        padding = inputs == PAD
        shifted = functional.pad(targets[:, :-1], (1, 0))
        future = torch.ones(targets.shape[1], targets.shape[1], dtype=torch.bool, device=targets.device).triu(
            1
        )
        encoded = self.transformer.encoder(self.embed(inputs), src_key_padding_mask=padding)
        decoded = self.transformer.decoder(
            self.embed(shifted),
            encoded,
            tgt_mask=future,
            tgt_is_causal=True,
            memory_key_padding_mask=padding,
        )
        return functional.linear(decoded, self.embedding.weight)


def on_device(batch: Batch) -> Pair:
    """Returns the ids of inputs and targets."""
    inputs, targets = (torch.from_numpy(ids.astype(np.int64)).to(DEVICE) for ids in batch)
    return inputs, targets


def build(config: Config, batches: list[Batch]) -> Contestant:
    torch.manual_seed(config.seed)
    torch.backends.mha.set_fastpath_enabled(False)  # it fails under autocast
    model = Model(config).to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    warmup = config.learning_rate_warmup_steps
    scale = config.learning_rate_constant * config.hidden_size**-0.5
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: scale * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5)
    )
    waiting = itertools.cycle([on_device(batch) for batch in batches])

    def loss_of(inputs: Tensor, targets: Tensor, smoothing: float = 0.0, reduction: str = "mean") -> Tensor:
        with torch.autocast(DEVICE, torch.bfloat16, enabled=config.precision == "bfloat16"):
            logits = model(inputs, targets)
        flat = logits.float().flatten(0, 1)
        settings: dict[str, Any] = {"label_smoothing": smoothing, "reduction": reduction}
        return functional.cross_entropy(flat, targets.flatten(), ignore_index=PAD, **settings)

    training_loss = loss_of
    if config.compiler:  # for each shape: kernels of variable shapes are slower
        training_loss = torch.compile(loss_of, dynamic=False, backend=config.compiler)

    def step() -> Tensor:
        optimizer.zero_grad(set_to_none=True)
        loss = training_loss(*next(waiting), config.label_smoothing)
        loss.backward()
        optimizer.step()
        schedule.step()
        return loss.detach()

    @torch.no_grad()
    def held_out_loss(batch: Batch) -> float:
        model.eval()
        total = loss_of(*on_device(batch), reduction="sum").item()
        model.train()
        return total

    return Contestant(
        name=f"PyTorch {torch.__version__}",
        parameters=sum(weight.numel() for weight in model.parameters()),
        step=step,
        held_out_loss=held_out_loss,
        peak_memory=lambda: torch.cuda.max_memory_allocated() if DEVICE == "cuda" else None,
    )


if __name__ == "__main__":
    serve(build)
