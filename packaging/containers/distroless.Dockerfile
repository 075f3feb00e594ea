# distroless.Dockerfile - an image without shell or packages, for one program on prairie. SPDX-License-Identifier: MIT
#
#   docker build -t with-prairie -f packaging/containers/distroless.Dockerfile .
#
# The library needs the C library, and nothing else. For the image of a program add: COPY program /program,
# ENTRYPOINT ["/program"].
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils cmake gcc libc6-dev ninja-build
COPY . /src
RUN cmake -S /src -B /build -G Ninja -DCMAKE_INSTALL_LIBDIR=lib \
    && cmake --build /build --target prairie_shared prairie_static prairie_jemalloc prairie_shared-hardened \
    && cmake --install /build --prefix /out

FROM gcr.io/distroless/base-debian12
COPY --from=build /out/lib/libprairie.so.0 /out/lib/libprairie_hardened.so /usr/local/lib/
ENV LD_PRELOAD=/usr/local/lib/libprairie.so.0
