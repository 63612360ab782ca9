"""Real clusters: nccl-tests by mpirun or srun, our schedules on torch.distributed, logs of training and serving.

Whatever is measured becomes rows of the one results table, beside what the simulation says of the same.
"""
