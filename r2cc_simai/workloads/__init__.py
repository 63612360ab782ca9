"""What a job does: models, GPUs, compute times, parallel layouts, and the generators that write it down."""
