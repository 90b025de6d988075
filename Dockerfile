# The image of all four commands: static binaries on an empty root, no shell, nobody's
# privileges. It has no entry point: say which command is to run.
#
#	make image
#	docker run --rm ledgerlake:VERSION ledgerlake-verify --help
#
# Pin both images by digest where builds must not change under you:
#	make image GO_IMAGE=docker.io/library/golang:1.26-bookworm@sha256:… BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot@sha256:…
ARG GO_IMAGE=docker.io/library/golang:1.26-bookworm
ARG BASE_IMAGE=gcr.io/distroless/static-debian12:nonroot

FROM --platform=$BUILDPLATFORM ${GO_IMAGE} AS build
WORKDIR /src
# The modules are a layer of their own: they change less often than what is ours.
COPY go.mod go.sum ./
RUN GOWORK=off go mod download
COPY . .
ARG TARGETOS=linux
ARG TARGETARCH=amd64
ARG VERSION=dev
# As make build and make dist do: the same bytes, wherever they are built.
RUN set -eu; \
	for command in ingest compact export verify; do \
		CGO_ENABLED=0 GOWORK=off GOOS=${TARGETOS} GOARCH=${TARGETARCH} \
			go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" \
			-o /out/ledgerlake-${command} ./cmd/${command}; \
	done

FROM ${BASE_IMAGE}
ARG VERSION=dev
LABEL org.opencontainers.image.title=ledgerlake \
	org.opencontainers.image.version=${VERSION} \
	org.opencontainers.image.licenses=Apache-2.0 \
	org.opencontainers.image.source=https://github.com/ledgerlake/ledgerlake
COPY --from=build /out/ /usr/local/bin/
COPY LICENSE /usr/share/doc/ledgerlake/LICENSE
ENV PATH=/usr/local/bin
USER 65532:65532
