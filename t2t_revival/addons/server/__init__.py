"""`t2t-server`: trained models behind HTTP, as TensorFlow Serving has them."""
