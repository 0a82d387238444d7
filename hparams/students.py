"""Sets for students of `t2t-distill`: a deep encoder, which runs once a sentence, and a shallow decoder.

References: Kasai et al., 2021, "Deep Encoder, Shallow Decoder: Reevaluating Non-autoregressive Machine
Translation"; Kim et al., 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
Translation".
"""

from t2t_revival import registration
from t2t_revival.hparams.base import base, small
from t2t_revival.hparams.hparams import HParams


@registration.register_hparams
def student_base() -> HParams:
    """12+1 layers, 512/2048, 8 heads, pre-norm: Kasai et al.'s deep encoder and decoder of one layer.

    Pre-norm, unlike base, since a post-norm encoder of 12 layers is hard to train (Wang et al., 2019,
    "Learning Deep Transformer Models for Machine Translation").
    """
    return base().replace(
        num_encoder_layers=12,
        num_decoder_layers=1,
        layer_preprocess_sequence="n",
        layer_postprocess_sequence="da",
    )


@registration.register_hparams
def student_tiny() -> HParams:
    """6+2 layers, 256/1024, 4 heads, pre-norm: a student for CPUs and small machines.

    Narrow and with a shallow decoder, as the students of Kim et al., but with self-attention in the decoder,
    where theirs has a recurrent unit: decoder_self_attention=ssru.
    """
    return small().replace(num_encoder_layers=6, num_decoder_layers=2)
