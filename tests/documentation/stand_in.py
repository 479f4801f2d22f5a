"""A service on loopback that answers as those of the pages do, over some texts."""

import json
import re

from scripted_service import Answer


def answering(texts):
    """Return what answers a request by the texts, as a function of the request.

    Args:
        texts: Text by the name of its document.
    """

    def found(query, k):
        words = set(re.findall("[a-z]{4,}", query.lower()))
        parts = [(name, part) for name, text in texts.items() for part in text.split("\n\n")]
        return sorted(parts, key=lambda each: -sum(w in each[1].lower() for w in words))[:k]

    def answer(seen):
        asked = seen.json
        if seen.path.endswith("/points/query"):  # Qdrant has a vector, and no words
            points = [
                {"id": n, "score": 1.0 - n / 100, "payload": _payload(*each)}
                for n, each in enumerate(found("return delivery order", asked["limit"]))
            ]
            return Answer({"result": {"points": points}, "status": "ok", "time": 0.001})
        if seen.path.endswith("/_search"):
            query = re.search(r'"query": "([^"]*)"', json.dumps(asked))[1]
            hits = [
                {"_id": f"d{n}", "_score": 9.0 - n, "_source": {"content": text, "path": name}}
                for n, (name, text) in enumerate(found(query, asked["size"]))
            ]
            return Answer({"took": 1, "timed_out": False, "hits": {"hits": hits}})
        query = asked.get("query") or asked["question"]
        hits = found(query, int(asked.get("k") or asked.get("top") or 5))
        if seen.path == "/ask":
            return Answer({"answer": hits[0][1], "contexts": [text for _, text in hits]})
        if seen.path == "/v1/search":
            rows = [
                {"meta": {"chunk_id": f"p{n}", "path": name}, "body": text}
                for n, (name, text) in enumerate(hits)
            ]
            return Answer({"took": 3, "data": {"passages": rows}})
        return Answer({"results": [{"text": text, "source": name} for name, text in hits]})

    return answer


def _payload(name, text):
    return {"page_content": text, "metadata": {"source": name}}
