#!/bin/sh
#SBATCH --job-name=quarrier
#SBATCH --array=0-999
#SBATCH --cpus-per-task=4
#SBATCH --time=02:00:00
#
# Searches the images in /evidence with an array of 1,000 tasks. All nodes must see both folders.
#
#   sbatch slurm.sh
#   quarrier search -f /evidence/patterns.txt /evidence/images --to /lab/found --format json
exec quarrier search -f /evidence/patterns.txt /evidence/images \
    --to /lab/found --shard "$SLURM_ARRAY_TASK_ID/1000" --workers 4
