package siemtest

import (
	"net/http"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// An OTLP is a receiver of logs.
type OTLP struct {
	Store
	// Rejects says which records are rejected; nil: none is. The answer says how
	// many they are, and no more.
	Rejects func(*logs.LogRecord) bool
}

// ServeHTTP implements [http.Handler].
func (o *OTLP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.count()
	raw, err := body(r)
	var data logs.LogsData
	if r.URL.Path != "/v1/logs" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.NotFound(w, r)
		return
	}
	if err != nil || proto.Unmarshal(raw, &data) != nil {
		o.fault("no logs: %v", err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	rejected := uint64(0)
	for _, resource := range data.GetResourceLogs() {
		for _, scope := range resource.GetScopeLogs() {
			for _, record := range scope.GetLogRecords() {
				if o.Rejects != nil && o.Rejects(record) {
					rejected++
					continue
				}
				o.take(id(record))
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	if rejected == 0 {
		return // an empty message
	}
	partial := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), rejected)
	partial = protowire.AppendString(protowire.AppendTag(partial, 2, protowire.BytesType), "some of them are too old")
	_, _ = w.Write(protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), partial))
}

func id(r *logs.LogRecord) string {
	for _, a := range r.GetAttributes() {
		if a.GetKey() == "ledgerlake.id" {
			return a.GetValue().GetStringValue()
		}
	}
	return ""
}
