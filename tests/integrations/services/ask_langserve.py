"""Asks a real server of LangServe: a retriever, and a chain whole and as a stream."""

import contextlib
import io
import json
import sys
import threading
import time
from socket import create_server

import uvicorn
from fastapi import FastAPI
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langserve import add_routes

from ragforge.cli import main

FOUND = [Document(id="r1", page_content="Goods go back.", metadata={"source": "returns.md"})]
app = FastAPI()
add_routes(app, RunnableLambda(lambda _: FOUND), path="/search")
chat = FakeListChatModel(responses=["Within thirty days."])
add_routes(
    app, ChatPromptTemplate.from_template("{question}") | chat | StrOutputParser(), path="/chain"
)


def probe(*words):
    """Return what a probe shows."""
    with io.StringIO() as out, contextlib.redirect_stdout(out):
        code = main(["probe", *words, "-q", "--json"])
        return {**json.loads(out.getvalue()), "code": code}


with create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error"))
threading.Thread(target=server.run, daemon=True).start()
while not server.started:
    time.sleep(0.05)
url, ask = f"http://127.0.0.1:{port}", "How long?"
hits = probe(
    f"{url}/search/invoke", ask, "--set", 'body={"input": "{query}"}', "--set", "results=output"
)
body = 'body={"input": {"question": "{query}"}}'
whole = probe(f"{url}/chain/invoke", ask, "--as", "system", "--set", body)
stream = probe(f"{url}/chain/stream", ask, "--as", "system", "--set", body)
server.should_exit = True
sys.stdout.write(
    json.dumps({"hits": hits["results"], "answers": [whole["answer"], stream["answer"]]})
)
