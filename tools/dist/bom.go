package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// bom is the bill of materials of an archive: the commands with their hashes, and each
// module of which something is in one, with its licence and what go.sum says of it.
func (r *release) bom(name string, binaries []binary, modules []module) ([]byte, error) {
	b := cdx.NewBOM()
	b.Metadata = &cdx.Metadata{
		Timestamp: r.when.Format(time.RFC3339),
		Component: &cdx.Component{BOMRef: name, Type: cdx.ComponentTypeApplication, Name: "ledgerlake", Version: r.version, Licenses: licences([]string{"Apache-2.0"}), Components: programs(binaries)},
	}
	var components []cdx.Component
	var refs []string
	for _, m := range modules {
		c := m.component()
		components, refs = append(components, c), append(refs, c.BOMRef)
	}
	b.Components = &components
	b.Dependencies = &[]cdx.Dependency{{Ref: name, Dependencies: &refs}}
	var text bytes.Buffer
	e := cdx.NewBOMEncoder(&text, cdx.BOMFileFormatJSON)
	e.SetPretty(true)
	e.SetEscapeHTML(false)
	if err := e.EncodeVersion(b, cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

func programs(binaries []binary) *[]cdx.Component {
	var all []cdx.Component
	for _, b := range binaries {
		name := filepath.Base(b.path)
		all = append(all, cdx.Component{
			BOMRef: name, Type: cdx.ComponentTypeFile, Name: name,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(b.body))}},
		})
	}
	return &all
}

// component is a module as CycloneDX has it. What go.sum says is a hash of its own kind,
// and so a property.
func (m *module) component() cdx.Component {
	purl := "pkg:golang/" + m.Path + "@" + m.Version
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: strings.ReplaceAll(purl, "+", "%2B"), Licenses: licences(m.licences)}
	if m.Sum != "" {
		c.Properties = &[]cdx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

func licences(ids []string) *cdx.Licenses {
	var all cdx.Licenses
	for _, id := range ids {
		all = append(all, cdx.LicenseChoice{License: &cdx.License{ID: id}})
	}
	return &all
}
