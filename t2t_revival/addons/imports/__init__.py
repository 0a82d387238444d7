"""Import of models of tensor2tensor, Marian and transformers into an output_dir of this project."""
