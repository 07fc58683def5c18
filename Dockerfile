# Image for Cloud Run and other container platforms. RAG_FUNCTIONS selects the functions that a container serves.
# The image has no local embedding model: it requires OPENAI_API_KEY, and RAG_EMBEDDING_URL for another endpoint.

# All tests run on Python 3.11. Dependabot proposes the digest of an image with newer security fixes.
FROM python:3.11-slim-trixie@sha256:da047cb8f9d1d98e5c070f5300ba9f7274e33b8fc0e5be5ed88740aed1b95ba9 AS packages
COPY requirements.txt requirements-parsers.txt requirements-sources.txt requirements-server.txt constraints.txt \
  requirements-excluded.txt pyproject.toml /build/
WORKDIR /build
# The virtual environment contains no pip. Only wheels are installed, so no compiler is needed.
# uv checks the hashes of constraints.txt, of which pip checks none, and omits the excluded packages of pyproject.toml.
RUN sed -n '/^uv==/,/[^\\]$/p' constraints.txt > uv.txt \
 && python -m pip install --no-cache-dir --only-binary=:all: --requirement uv.txt \
 && python -m venv --without-pip /venv \
 && uv pip install --python /venv/bin/python --no-cache --compile-bytecode --only-binary=:all: \
      --require-hashes --excludes requirements-excluded.txt \
      --constraint constraints.txt --requirement requirements-server.txt

FROM python:3.11-slim-trixie@sha256:da047cb8f9d1d98e5c070f5300ba9f7274e33b8fc0e5be5ed88740aed1b95ba9 AS server
LABEL org.opencontainers.image.licenses="Apache-2.0"
# OCR of pictures and scanned pages: docker build --build-arg OCR_LANGUAGES="eng deu". Without it the image has none.
ARG OCR_LANGUAGES=""
# No versions: each build gets the latest security fixes. The languages are words.
# hadolint ignore=DL3008,SC2046
RUN if [ -n "$OCR_LANGUAGES" ]; then \
      apt-get update \
      && apt-get install --yes --no-install-recommends tesseract-ocr \
           $(for language in $OCR_LANGUAGES; do echo "tesseract-ocr-$language"; done) \
      && rm -rf /var/lib/apt/lists/*; \
    fi
COPY --from=packages /venv /venv
COPY LICENSE NOTICE /app/
COPY shared /app/shared
COPY functions /app/functions
WORKDIR /app
# The user of the container cannot write bytecode. Compiling at build time saves a quarter of a second at each start.
RUN python -m compileall -q --invalidation-mode unchecked-hash .
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 PORT=8080
# A numeric user id, because platforms that refuse root cannot check a name. The user owns no file of the image.
USER 10001:10001
EXPOSE 8080
# For Docker and Compose. Cloud Run ignores HEALTHCHECK and has its own probes.
HEALTHCHECK --interval=30s --timeout=15s --start-period=20s \
  CMD ["python", "-c", "import os, urllib.request as r; r.urlopen(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health')"]
# The exec form, without a shell: the server receives SIGTERM and finishes running requests.
CMD ["python", "-m", "functions.server"]

# The image for functions of AWS Lambda that stream: docker build --target lambda. The adapter is an extension of Lambda
# that passes calls on to the server as HTTP requests.
FROM server AS lambda
# An instance of Lambda handles one request at a time.
ENV WEB_CONCURRENCY=1
COPY --from=public.ecr.aws/awsguru/aws-lambda-adapter:1.0.1@sha256:1e5ab4d9242167500ed8a7bed8a79b448228aaa51cf382fb51fe4bf8a5f9a811 /lambda-adapter /opt/extensions/lambda-adapter

# The default image.
FROM server
