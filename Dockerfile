# The page and the HTTP API on several workers. Build: docker build -t ragflow-chatbot .
FROM python:3.13-slim AS build
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY chatbot chatbot
COPY graphs graphs
COPY prompts prompts
COPY serving serving
ARG EXTRAS=anthropic,documents,google
RUN python -m venv /opt/venv \
 && /opt/venv/bin/python -m pip install --no-cache-dir -c constraints.txt ".[$EXTRAS]"

FROM python:3.13-slim
RUN useradd --create-home --uid 10001 chatbot \
 && install --directory --owner chatbot /data /knowledge
COPY --from=build /opt/venv /opt/venv
COPY --chown=chatbot examples/knowledge /knowledge
ENV PATH=/opt/venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    CHATBOT_DATA_DIR=/data \
    KNOWLEDGE_DIR=/knowledge \
    LOG_FORMAT=json \
    WORKERS=2
USER 10001
WORKDIR /home/chatbot
# For compose.aegra.yaml: aegra reads the graph's file beside its configuration.
COPY aegra.json ./
COPY serving/aegra.py serving/
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/health/ready', timeout=4)"]
# Without users to sign in the server refuses to be reached from outside: set AUTH_KEYS_DIR or JWT_*.
CMD ["sh", "-c", "exec chatbot serve --host 0.0.0.0 --port 8000 --workers \"$WORKERS\""]
