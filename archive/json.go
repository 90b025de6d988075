package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// unmarshalTuple reads a JSON array of exactly len(into) values.
func unmarshalTuple(b []byte, into ...any) error {
	var raw []json.RawMessage
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	if len(raw) != len(into) {
		return fmt.Errorf("tuple of %d values, want %d", len(raw), len(into))
	}
	for i, r := range raw {
		if bytes.Equal(r, []byte("null")) {
			return fmt.Errorf("value %d of a tuple is null", i)
		}
		if err := json.Unmarshal(r, into[i]); err != nil {
			return err
		}
	}
	return nil
}
