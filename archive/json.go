package archive

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// decodeStrict reads one JSON document. A member that stands twice in an
// object is an error, for two readers could take two values; a member that
// this version does not know is none.
func decodeStrict(body []byte, into any) error {
	if err := checkMembers(body); err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// checkMembers refuses a document in which an object has a member twice, or
// after which anything follows.
func checkMembers(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := checkValue(dec); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("bytes after the document")
	}
	return nil
}

func checkValue(dec *json.Decoder) error {
	tok, err := dec.Token()
	if err != nil {
		return err
	}
	switch tok {
	case json.Delim('{'):
		return checkObject(dec)
	case json.Delim('['):
		for dec.More() {
			if err := checkValue(dec); err != nil {
				return err
			}
		}
		_, err = dec.Token()
	}
	return err
}

func checkObject(dec *json.Decoder) error {
	seen := map[string]bool{}
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := tok.(string)
		if seen[name] {
			return fmt.Errorf("member %q stands twice", name)
		}
		seen[name] = true
		if err := checkValue(dec); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}
