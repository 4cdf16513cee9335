"""What a job on Flink costs, measured on a cluster of this machine: each program starts its own."""
