"""Live pages about datasets, served over HTTP: needs the extra `view` (Starlette, uvicorn)."""
