#!/bin/sh
# A job array over the shards that `ragforge shard plan --into "$WORK"` made; 16 of them at once.
# sbatch --export=ALL,WORK=/shared/work --array="0-$((SHARDS - 1))%16" slurm.sh
#SBATCH --job-name=ragforge
#SBATCH --cpus-per-task=1
#SBATCH --mem=1G
#SBATCH --requeue
exec ragforge shard run "$WORK" --index "$SLURM_ARRAY_TASK_ID" --quiet
