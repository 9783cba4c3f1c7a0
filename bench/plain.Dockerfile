# The peer: what a person writes who needs TensorFlow with CUDA on the same base. --no-cache-dir is in its favour
# (no second copy of all wheels in the image). pip comes from a wheel because the base has none; index, proxy and
# CA bundle of this machine are secrets, as its network may need them.
ARG BASE
FROM ${BASE}
ARG PYTHON
ARG REQUIREMENT
RUN --mount=type=bind,source=pip.whl,target=/run/pip-0-py3-none-any.whl \
    --mount=type=secret,id=pip.conf \
    --mount=type=secret,id=ca.pem \
    PIP_CONFIG_FILE=/run/secrets/pip.conf "python${PYTHON}" /run/pip-0-py3-none-any.whl/pip \
        install --no-cache-dir --break-system-packages --progress-bar off "${REQUIREMENT}"
