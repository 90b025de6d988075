package siemtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// A Bulk is a cluster with the _bulk interface.
type Bulk struct {
	Store
	Authorization string // that requests have; "" is any
	MaxBytes      int    // of a request: 413 above
	// Verdict says what becomes of a document that is not there yet; nil: all are
	// created. Text may quote it, as real ones do.
	Verdict func(id string, doc []byte) (status int, typ, text string)
	// Forget leaves the last items out of so many answers.
	Forget int
	// Blank answers with no items at all to so many requests.
	Blank int

	mu   sync.Mutex
	docs map[string][]byte // by index and id
}

// Docs returns the documents, by index, a slash, and _id.
func (b *Bulk) Docs() map[string][]byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[string][]byte{}
	for k, v := range b.docs {
		all[k] = v
	}
	return all
}

// ServeHTTP implements [http.Handler].
func (b *Bulk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.count()
	raw, err := body(r)
	switch {
	case r.Method != http.MethodPost || r.URL.Path != "/_bulk":
		http.NotFound(w, r)
		return
	case b.Authorization != "" && r.Header.Get("Authorization") != b.Authorization:
		say(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"type": "security_exception"}, "status": 401})
		return
	case b.MaxBytes > 0 && len(raw) > b.MaxBytes:
		w.WriteHeader(http.StatusRequestEntityTooLarge)
		return
	case err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-ndjson") || !bytes.HasSuffix(raw, []byte("\n")):
		b.fault("no bulk request: %v", err)
		say(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"type": "illegal_argument_exception"}, "status": 400})
		return
	}
	items, err := b.create(raw)
	if err != nil {
		b.fault("%v", err)
		say(w, http.StatusBadRequest, map[string]any{"error": map[string]any{"type": "illegal_argument_exception"}, "status": 400})
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Blank > 0 {
		b.Blank--
		items = items[:0]
	} else if b.Forget > 0 {
		b.Forget--
		items = items[:len(items)-1]
	}
	say(w, http.StatusOK, map[string]any{"took": 1, "errors": true, "items": items})
}

// create creates the documents of a request, and returns its items.
func (b *Bulk) create(raw []byte) (items []any, err error) {
	lines := bytes.Split(bytes.TrimSuffix(raw, []byte("\n")), []byte("\n"))
	if len(lines)%2 != 0 {
		return nil, fmt.Errorf("%d lines", len(lines))
	}
	for pair := range slices.Chunk(lines, 2) {
		var action map[string]struct {
			Index string `json:"_index"`
			ID    string `json:"_id"`
		}
		if err := json.Unmarshal(pair[0], &action); err != nil {
			return nil, err
		}
		to, ok := action["create"]
		if !ok || len(action) != 1 || !legalIndex(to.Index) || to.ID == "" || len(to.ID) > 512 {
			return nil, fmt.Errorf("action %s", pair[0])
		}
		items = append(items, map[string]any{"create": b.one(to.Index, to.ID, pair[1])})
	}
	return items, nil
}

func (b *Bulk) one(index, id string, doc []byte) map[string]any {
	refuse := func(status int, typ, text string) map[string]any {
		return map[string]any{"_index": index, "_id": id, "status": status, "error": map[string]any{
			"type": typ, "reason": text, "caused_by": map[string]any{"type": "illegal_argument_exception", "reason": text},
		}}
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(doc, &fields); err != nil {
		b.fault("%s: %v", id, err)
		return refuse(http.StatusBadRequest, "document_parsing_exception", string(doc))
	}
	if fields["@timestamp"] == nil {
		b.fault("%s: no @timestamp", id)
		return refuse(http.StatusBadRequest, "document_parsing_exception", "data stream timestamp field [@timestamp] is missing")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.docs == nil {
		b.docs = map[string][]byte{}
	}
	if b.docs[index+"/"+id] != nil {
		return refuse(http.StatusConflict, "version_conflict_engine_exception", "document already exists")
	}
	if b.Verdict != nil {
		if status, typ, text := b.Verdict(id, doc); status != http.StatusCreated {
			return refuse(status, typ, text)
		}
	}
	b.docs[index+"/"+id] = doc
	b.take(id)
	return map[string]any{"_index": index, "_id": id, "status": http.StatusCreated, "result": "created"}
}

// legalIndex is what Elasticsearch says of names of indexes.
func legalIndex(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && s == strings.ToLower(s) &&
		!strings.ContainsAny(s, `\/*?"<>| ,#:`) && !strings.ContainsAny(s[:1], "-_+")
}
