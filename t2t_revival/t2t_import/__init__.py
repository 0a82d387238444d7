"""Import of tensor2tensor 1.15 checkpoints into an output_dir of this project."""
