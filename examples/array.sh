#!/bin/bash
#SBATCH --job-name=wavelengths
#SBATCH --array=1-2
#SBATCH --cpus-per-task=32
#SBATCH --mem=64G
#SBATCH --time=02:00:00
part=$SLURM_ARRAY_TASK_ID
opticoll sweep study.yaml --shard "$part/2" --store "part$part.sqlite"
