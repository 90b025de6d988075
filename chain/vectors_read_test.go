package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"unicode/utf8"
)

// vectors is the shape of a file. Every member must be there: readVectors
// refuses a file that does not come back the same.
type vectors struct {
	Format  string               `json:"format"`
	Encode  []map[string]*string `json:"encode"` // text_hex, and value (a string or null) or int
	Escape  []escapeVector       `json:"escape"`
	Genesis genesisVector        `json:"genesis"`
	Reset   struct {
		genesisVector
		PreviousHead Hash   `json:"previousHead"`
		PreviousSize int64  `json:"previousSize"`
		Reason       string `json:"reason"`
	} `json:"genesis_reset"`
	Rows      []rowVector      `json:"rows"`
	Head      Hash             `json:"head"`
	Root      Hash             `json:"root"`
	Frontier  []Hash           `json:"frontier"`
	Trees     treeVectors      `json:"trees"`
	HMAC      hmacVectors      `json:"hmac"`
	Residuals []residualVector `json:"residuals"`
	Notes     noteVectors      `json:"notes"`
}

type escapeVector struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

type genesisVector struct {
	ArchiveID string `json:"archiveId"`
	Tenant    string `json:"tenant"`
	Topic     string `json:"topic"`
	TopicID   string `json:"topicId"`
	Partition int32  `json:"partition"`
	Epoch     int32  `json:"epoch"`
	Hash      Hash   `json:"hash"`
}

func (g *genesisVector) log() Log {
	return Log{ArchiveID: g.ArchiveID, Tenant: g.Tenant, Topic: g.Topic, TopicID: g.TopicID, Partition: g.Partition}
}

type rowVector struct {
	Columns       map[string]string `json:"columns"` // integers in decimal, raw in hex
	RowSalt       Hash              `json:"row_salt"`
	PrevHash      Hash              `json:"prev_hash"`
	UserSalt      Hash              `json:"user_salt"`
	SlotCommits   map[string]Hash   `json:"slot_commits"`
	UserCommit    *Hash             `json:"user_commit"`
	PayloadCommit Hash              `json:"payload_commit"`
	RowHash       Hash              `json:"row_hash"`
	Preimage      string            `json:"preimage"`
}

type treeVectors struct {
	LeafInputs string `json:"leaf_inputs"`
	Sizes      []struct {
		Size     int64  `json:"size"`
		Root     Hash   `json:"root"`
		Frontier []Hash `json:"frontier"`
	} `json:"sizes"`
	Inclusion []struct {
		Size  int64  `json:"size"`
		Index int64  `json:"index"`
		Proof []Hash `json:"proof"`
	} `json:"inclusion"`
	Consistency []struct {
		From  int64  `json:"from"`
		To    int64  `json:"to"`
		Proof []Hash `json:"proof"`
	} `json:"consistency"`
}

type hmacVectors struct {
	Key     string `json:"key"`
	Genesis Hash   `json:"genesis"`
	Rows    []struct {
		Row      int  `json:"row"`
		PrevHash Hash `json:"prev_hash"`
		RowHash  Hash `json:"row_hash"`
	} `json:"rows"`
}

type residualVector struct {
	Row           int             `json:"row"`
	Erased        []string        `json:"erased"`
	Residual      json.RawMessage `json:"residual"`
	PayloadCommit Hash            `json:"payload_commit"`
}

type noteVectors struct {
	Name           string `json:"name"`
	Seed           string `json:"seed"`
	VKey           string `json:"vkey"`
	AnchorText     string `json:"anchor_text"`
	AnchorNote     string `json:"anchor_note"`
	CheckpointText string `json:"checkpoint_text"`
	CheckpointNote string `json:"checkpoint_note"`
}

// readVectors decodes a file, strictly: what is decoded must say all that the
// file says. So a member that is unknown, missing, there twice or spelt in
// another case, a null for a string, and a number in another form are errors.
func readVectors(data []byte) (*vectors, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("no valid UTF-8")
	}
	was, err := jsonTree(data)
	if err != nil {
		return nil, err
	}
	var v vectors
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	again, err := json.Marshal(&v)
	if err != nil {
		return nil, err
	}
	var is any
	d = json.NewDecoder(bytes.NewReader(again))
	d.UseNumber()
	if err := d.Decode(&is); err != nil || !reflect.DeepEqual(was, is) {
		return nil, errors.New("a member is missing, misspelt or of another type")
	}
	return &v, nil
}

// jsonTree decodes one JSON value, keeping numbers as they are written. It
// fails where an object has a member twice, or where text follows.
func jsonTree(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := readValue(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("text after the end")
	}
	return v, nil
}

func readValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	switch {
	case err != nil:
		return nil, err
	case token == json.Delim('{'):
		return readObject(d)
	case token == json.Delim('['):
		return readArray(d)
	}
	return token, nil
}

func readObject(d *json.Decoder) (any, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		if _, twice := object[name]; twice {
			return nil, fmt.Errorf("member %q is there twice", name)
		}
		if object[name], err = readValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func readArray(d *json.Decoder) (any, error) {
	array := []any{}
	for d.More() {
		v, err := readValue(d)
		if err != nil {
			return nil, err
		}
		array = append(array, v)
	}
	_, err := d.Token()
	return array, err
}
