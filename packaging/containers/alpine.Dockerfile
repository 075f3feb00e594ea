# alpine.Dockerfile - an image of Alpine, whose C library is musl, with programs on prairie. SPDX-License-Identifier: MIT
#
#   docker build -t with-prairie -f packaging/containers/alpine.Dockerfile .
#
# It is the library that is built on Debian: one file serves programs of both C libraries, and this one is tested.
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils cmake gcc libc6-dev ninja-build
COPY . /src
RUN cmake -S /src -B /build -G Ninja -DCMAKE_INSTALL_LIBDIR=lib \
    && cmake --build /build --target prairie_shared prairie_static prairie_jemalloc prairie_shared-hardened \
    && cmake --install /build --prefix /out

FROM alpine:3.20
COPY --from=build /out/lib/libprairie.so.0 /out/lib/libprairie_hardened.so /usr/local/lib/
ENV LD_PRELOAD=/usr/local/lib/libprairie.so.0
