#!/bin/sh
# Makes the set: once, and again when you want other queries. Keep my-set/ with your code.
#   sh make_set.sh && pytest
set -eu
ragforge generate --documents documents -n 6 --out my-set
ragforge retrieve --dataset my-set --retriever retriever:search --name mine -k 5
