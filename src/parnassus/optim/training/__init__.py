"""Parts of a training procedure: mini-batches, learning-rate schedules, validation, early stopping."""
