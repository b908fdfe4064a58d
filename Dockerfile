# armlet serve in a container: docker build --tag armlet .
# Not built where it was written, since there is no Docker daemon there; `make container-check` runs its steps.
FROM python:3.13-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN python -m venv /opt/armlet
RUN /opt/armlet/bin/pip install --no-cache-dir --constraint constraints.txt '.[service,postgresql]'

FROM python:3.13-slim-bookworm
RUN groupadd --gid 10001 armlet && useradd --uid 10001 --gid 10001 --no-create-home --shell /usr/sbin/nologin armlet
RUN install --directory --owner 10001 --group 10001 --mode 0700 /data
COPY --from=build /opt/armlet /opt/armlet
ENV PATH=/opt/armlet/bin:/usr/local/bin:/usr/bin:/bin PYTHONUNBUFFERED=1
# others can reach it, so it refuses to start without keys
ENV ARMLET_LISTEN_HOST=0.0.0.0 ARMLET_LISTEN_PORT=8080 ARMLET_LOG_FORMAT=json
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['ARMLET_LISTEN_PORT'] + '/healthz', timeout=2)"]
ENTRYPOINT ["armlet", "serve"]
CMD ["/etc/armlet/armlet.toml"]
