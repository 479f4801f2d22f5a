#!/bin/sh
# Is the service's retriever better than BM25, and are its answers right? SERVICE says where it is.
set -eu
SERVICE=${SERVICE:-http://127.0.0.1:8001}
ragforge generate --documents documents -n 6 --out my-set
ragforge retrieve --dataset my-set --retriever "http:$SERVICE/search" --name service -k 5
ragforge retrieve --dataset my-set --retriever bm25 -k 5
ragforge compare --dataset my-set bm25 service
ragforge answer --dataset my-set --system "http:$SERVICE/answer" --name service
