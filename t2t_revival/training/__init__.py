"""Section 5: loss, optimizer, schedule, checkpoints, and the loop that uses them."""
