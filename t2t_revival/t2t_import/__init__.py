"""What tensor2tensor 1.15 left in an output_dir, as an output_dir of this project."""
