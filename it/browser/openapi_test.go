package browser

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/ledgerlake/ledgerlake/export/serve"
)

// The document is one that programs can read: it is valid, and all that it refers
// to is there.
func TestTheDocumentIsValid(t *testing.T) {
	text, err := json.Marshal(serve.Document())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	for path, item := range doc.Paths.Map() {
		if item.Get == nil || len(item.Operations()) != 1 {
			t.Errorf("%s: want GET alone", path)
		}
		if strings.Contains(path, "{tenant}") && item.Get.Security != nil {
			t.Errorf("%s: it asks for no token", path)
		}
	}
	// A document with a fault is one to this test.
	broken := strings.Replace(string(text), `"#/components/schemas/Records"`, `"#/components/schemas/None"`, 1)
	if _, err := openapi3.NewLoader().LoadFromData([]byte(broken)); err == nil {
		t.Error("a reference that leads nowhere is not seen")
	}
}
