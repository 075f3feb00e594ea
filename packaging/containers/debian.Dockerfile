# debian.Dockerfile - an image of Debian whose programs run on prairie. SPDX-License-Identifier: MIT
#
#   docker build -t with-prairie -f packaging/containers/debian.Dockerfile .
#
# Then `FROM with-prairie` in the image of a program, or the lines of the second stage in it.
FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends binutils cmake gcc libc6-dev ninja-build
COPY . /src
RUN cmake -S /src -B /build -G Ninja -DCMAKE_INSTALL_LIBDIR=lib \
    && cmake --build /build --target prairie_shared prairie_static prairie_jemalloc prairie_shared-hardened \
    && cmake --install /build --prefix /out

FROM debian:bookworm-slim
COPY --from=build /out/lib/libprairie.so.0 /out/lib/libprairie_hardened.so /usr/local/lib/
ENV LD_PRELOAD=/usr/local/lib/libprairie.so.0
