"""Imports what each process of tests begins with, so that it need not be searched for garbage."""

import gc

gc.disable()  # until all is imported

import t2t_revival.decoding.engines.tensorflow_engine  # noqa: E402
import t2t_revival.experiment  # noqa: E402, F401

gc.freeze()
gc.enable()
