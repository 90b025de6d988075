#!/usr/bin/env bash
# Builds the image of the Dockerfile, by whichever of docker, podman and buildah has an
# engine at hand: tools/image.sh VERSION [NAME]
#
# GO_IMAGE and BASE_IMAGE in the environment take the place of the Dockerfile's.
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: tools/image.sh VERSION [NAME]}
# Tags have no plus sign.
name=${2:-ledgerlake}:${version//+/-}

arguments=(--build-arg "VERSION=$version")
for image in GO_IMAGE BASE_IMAGE; do
	[ -z "${!image:-}" ] || arguments+=(--build-arg "$image=${!image}")
done

if docker info >/dev/null 2>&1; then
	# BuildKit says for which platform it builds; the other builders are told.
	exec env DOCKER_BUILDKIT=1 docker build "${arguments[@]}" --tag "$name" .
fi
platform=linux/$(go env GOARCH)
arguments+=(--build-arg "BUILDPLATFORM=$platform" --build-arg "TARGETARCH=${platform#linux/}")
if podman info >/dev/null 2>&1; then
	exec podman build "${arguments[@]}" --tag "$name" .
fi
if buildah info >/dev/null 2>&1; then
	exec buildah build "${arguments[@]}" --tag "$name" .
fi
echo "no image is built: neither docker, podman nor buildah has an engine here (docker info, podman info, buildah info say why)" >&2
exit 1
