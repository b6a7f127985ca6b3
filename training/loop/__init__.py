"""The training loop: batches, losses, optimiser, schedule, log and checkpoints."""
