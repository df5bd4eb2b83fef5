# JupyterLab with the Perspex kernel and its panel, as an ordinary user.
#   docker build -t perspex . && docker run --rm -p 8888:8888 perspex
# --build-arg VERSION=1.2.3 says which version this is: the image gets no history of git.

FROM node:22-slim AS panel
RUN apt-get update && apt-get install --no-install-recommends -y python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
COPY . /source
WORKDIR /source
RUN python3 -m venv /build && /build/bin/pip install --no-cache-dir build jupyterlab msgspec
ARG VERSION=
RUN PATH=/build/bin:$PATH PERSPEX_REQUIRE_PANEL=1 SETUPTOOLS_SCM_PRETEND_VERSION=$VERSION python -m build --wheel --outdir /wheels

FROM python:3.13-slim
COPY --from=panel /wheels /wheels
RUN pip install --no-cache-dir "$(ls /wheels/*.whl)[lab]" && rm -r /wheels \
    && useradd --create-home reader
USER reader
WORKDIR /home/reader
RUN perspex doctor
EXPOSE 8888
# Other machines reach it, so Jupyter's token protects it: it is in what the container prints.
CMD ["perspex", "lab", "--no-browser", "--ip=0.0.0.0"]
