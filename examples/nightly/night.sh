#!/bin/sh
# One night: the set follows its documents, and the runs are measured on the new version.
#   sh night.sh            by hand
#   ragforge schedule cron prints the line that runs it every night
set -eu
if [ ! -d my-set ]; then
  ragforge generate --documents documents -n 6 --out my-set
fi
ragforge refresh --dataset my-set --documents documents --accept-churn
ragforge evaluate --dataset my-set --retriever bm25
ragforge history --dataset my-set
