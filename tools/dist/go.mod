// The program of make dist, in a module of its own so that what it needs stays out of
// the product's.
module github.com/ledgerlake/ledgerlake/tools/dist

go 1.26.0

require github.com/CycloneDX/cyclonedx-go v0.12.0

require golang.org/x/mod v0.43.0
