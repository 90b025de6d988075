package proof

import "github.com/ledgerlake/ledgerlake/archive/jsondoc"

// What this package reads documents with.
type (
	document = jsondoc.Document
	field    = jsondoc.Field
)

func readDocument(text []byte, fields ...field) error { return jsondoc.Read(text, fields...) }
