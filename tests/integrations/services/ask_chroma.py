"""Asks a real server of Chroma, as a user's settings describe it; prints what came of it."""

import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from socket import create_server

from ragforge.cli import main
from ragforge.mock import serving

COLLECTIONS = "/api/v2/tenants/default_tenant/databases/default_database/collections"
TEXTS = {
    "returns-1": "Unopened goods go back within thirty days.",
    "care-1": "Beeswax keeps oak from drying out.",
}


def post(url, body):
    """Post JSON, and return that of the reply."""
    headers = {"Content-Type": "application/json", "Authorization": "Bearer none"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as reply:
        return json.load(reply)


@contextlib.contextmanager
def chroma():
    """Run a server; yield its address when it answers."""
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["run", "--host", "127.0.0.1", "--port", str(port), "--path", "chroma"]
    server = subprocess.Popen(
        [str(Path(sys.executable).parent / "chroma"), *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/api/v2/heartbeat").close()
                break
            time.sleep(0.1)
        yield url
    finally:
        server.terminate()
        server.wait()


with chroma() as url, serving() as model:
    sent = {"model": "m", "input": list(TEXTS.values()), "encoding_format": "float"}
    vectors = [row["embedding"] for row in post(f"{model.url}/embeddings", sent)["data"]]
    collection = f"{url}{COLLECTIONS}/{post(url + COLLECTIONS, {'name': 'docs'})['id']}"
    sources = [{"source": f"{name.partition('-')[0]}.md"} for name in TEXTS]
    added = {"ids": list(TEXTS), "documents": list(TEXTS.values()), "metadatas": sources}
    post(f"{collection}/add", {**added, "embeddings": vectors})
    request = (
        f'[model]\nbase_url = "{model.url}"\nembedding_model = "m"\n'
        f'[retrievers.chroma]\nurl = "{collection}/query"\n'
        'body = { query_embeddings = ["{vector}"], n_results = "{k}" }\n'
    )
    Path("services.toml").write_text(request, encoding="utf-8")
    words = ["chroma", TEXTS["care-1"], "--config", "services.toml", "-k", "2", "--json", "-q"]
    proposed = Path("proposed.json")
    with proposed.open("w") as out, contextlib.redirect_stdout(out):
        main(["probe", *words])
    for item in json.loads(proposed.read_text())["proposals"]:
        words += ["--set", f"{item['setting']}={item['path']}"]
    sys.exit(main(["probe", *words]))
