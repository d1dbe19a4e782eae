# Two images from the wheel that `make wheels` builds:
#   docker build --target predict -t tierwise .        predicts and advises; needs no privileges
#   docker build --target lab -t tierwise-lab .        runs every engine on emulated disks; needs --privileged
ARG DEBIAN=trixie

FROM debian:${DEBIAN}-slim AS predict
RUN --mount=type=bind,target=/source /source/compat/image.sh predict /source/dist
USER dba
WORKDIR /work
ENTRYPOINT ["tierwise"]
CMD ["--help"]

FROM debian:${DEBIAN}-slim AS lab
RUN --mount=type=bind,target=/source /source/compat/image.sh lab /source/dist
WORKDIR /work
ENTRYPOINT ["tierwise"]
CMD ["doctor"]
