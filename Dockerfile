# Cloud Run, or any place that runs containers. One function, several or all of them: RAG_FUNCTIONS.
# There is no local embedder in it: OPENAI_API_KEY is needed, RAG_EMBEDDING_URL for another endpoint.

# The Python that everything is tested on. The tag takes its security fixes with each build.
FROM python:3.11-slim-trixie AS packages
COPY requirements.txt requirements-parsers.txt requirements-server.txt constraints.txt /build/
WORKDIR /build
# Without pip in it, which nothing needs later; wheels only, so no compiler either.
RUN python -m venv --without-pip /venv \
 && python -m pip --python /venv/bin/python install --no-cache-dir --only-binary=:all: \
      --constraint constraints.txt --requirement requirements-server.txt

FROM python:3.11-slim-trixie
COPY --from=packages /venv /venv
COPY shared /app/shared
COPY functions /app/functions
WORKDIR /app
# Without bytecode, which the user below cannot write, each start compiles a quarter of a second.
RUN python -m compileall -q --invalidation-mode unchecked-hash .
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PORT=8080
# A number, so that platforms which refuse root can see that it is none. It owns nothing in the image.
USER 10001:10001
EXPOSE 8080
# Cloud Run has probes of its own and ignores this; Docker and Compose do not.
HEALTHCHECK --interval=30s --timeout=15s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health')"]
# Without a shell before it: SIGTERM reaches the server, which drains.
CMD ["python", "-m", "functions.server"]
