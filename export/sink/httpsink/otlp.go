package httpsink

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
)

// OTLPOptions say which receiver takes logs, and what they are said to come from.
type OTLPOptions struct {
	HTTP      // URL is the receiver's; /v1/logs where it has no path
	ArchiveID string
	Service   string            // service.name; "" is ledgerlake
	Resource  map[string]string // more attributes of the resource
	// Line has the line for people as the body of a log record; else it is the event
	// in the destination's format.
	Line   bool
	Limits sink.Limits // zero members are the usual ones
}

// An OTLP delivers log records by OTLP/HTTP in protobuf.
//
// A receiver may take a part of a request, and say how much of it it refused for
// good (partial_success); it does not say which, and the request is not to be sent
// again. All its events are then poison, with that reason: a dead letter for each
// that may be missing, of which most are not.
//
// Source: OpenTelemetry Protocol Specification 1.9, "OTLP/HTTP".
type OTLP struct {
	c        *client
	o        OTLPOptions
	url      string
	resource *resource.Resource
	scope    *common.InstrumentationScope
	encoders sync.Pool
}

// Scope is the name of the instrumentation scope.
const Scope = "github.com/ledgerlake/ledgerlake/export"

// NewOTLP returns an OTLP.
func NewOTLP(o OTLPOptions) (*OTLP, error) {
	c, err := newClient(o.HTTP)
	if err != nil {
		return nil, err
	}
	s := &OTLP{c: c, o: o, url: c.pathOr("v1/logs"), scope: &common.InstrumentationScope{Name: Scope, Version: o.Version}}
	s.encoders.New = func() any {
		e, err := event.NewEncoder(event.JSON, event.EncoderOptions{ArchiveID: o.ArchiveID, Version: o.Version})
		if err != nil {
			panic(err) // the format is built in
		}
		return e
	}
	s.resource = newResource(&o)
	// Less than the dead letters in a row after which a destination is suspended.
	s.o.Limits = limits(o.Limits, sink.Limits{Events: 500, BatchBytes: 3 << 20, EventBytes: 2 << 20})
	return s, nil
}

func newResource(o *OTLPOptions) *resource.Resource {
	r := &resource.Resource{Attributes: []*common.KeyValue{text("service.name", cmp.Or(o.Service, "ledgerlake"))}}
	if o.Version != "" {
		r.Attributes = append(r.Attributes, text("service.version", o.Version))
	}
	if o.ArchiveID != "" {
		r.Attributes = append(r.Attributes, text("ledgerlake.archive_id", o.ArchiveID))
	}
	for _, name := range slices.Sorted(maps.Keys(o.Resource)) {
		r.Attributes = append(r.Attributes, text(name, o.Resource[name]))
	}
	return r
}

// Limits implements [sink.Sink].
func (s *OTLP) Limits() sink.Limits { return s.o.Limits }

// Close implements [sink.Sink].
func (s *OTLP) Close(context.Context) error {
	s.c.close()
	return nil
}

// Deliver implements [sink.Sink].
func (s *OTLP) Deliver(ctx context.Context, batch []sink.Message) sink.Result {
	body, err := s.body(batch)
	if err != nil {
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Poison, Reason: "it cannot be written as OTLP"})
	}
	a, err := s.c.post(ctx, request{url: s.url, contentType: protobuf, body: body})
	if err != nil {
		return s.c.failed(ctx, len(batch), err)
	}
	r := s.c.judged(batch, a, "")
	if r.Done() {
		return s.accepted(batch, a)
	}
	return r
}

const protobuf = "application/x-protobuf"

// accepted returns the result of an answer that says success, of all or of a
// part.
func (s *OTLP) accepted(batch []sink.Message, a *answer) sink.Result {
	rejected, err := rejectedRecords(a.body)
	switch {
	case !a.whole, len(a.body) > 0 && a.contentType() != protobuf, err != nil:
		return s.c.unclear(batch, a, "that is no answer of an OTLP receiver")
	case rejected <= 0:
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Delivered})
	case rejected >= int64(len(batch)):
		return sink.All(len(batch), sink.Verdict{Outcome: sink.Poison, Reason: s.c.reason(batch, a, "rejected by the receiver (partial_success)")})
	}
	return sink.All(len(batch), sink.Verdict{Outcome: sink.Poison, Reason: s.c.reason(batch, a,
		fmt.Sprintf("the receiver rejected %d of the %d log records of a request and does not say which (partial_success): this is one of the %d, and may have been taken", rejected, len(batch), len(batch)))})
}

// body returns a batch as an ExportLogsServiceRequest, which on the wire is the
// same as LogsData.
func (s *OTLP) body(batch []sink.Message) ([]byte, error) {
	e := s.encoders.Get().(*event.Encoder)
	defer s.encoders.Put(e)
	records := make([]*logs.LogRecord, len(batch))
	for i := range batch {
		records[i] = s.record(e, &batch[i])
	}
	return proto.Marshal(&logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{
		Resource: s.resource, SchemaUrl: event.SemConvSchema,
		ScopeLogs: []*logs.ScopeLogs{{Scope: s.scope, LogRecords: records, SchemaUrl: event.SemConvSchema}},
	}}})
}

func (s *OTLP) record(e *event.Encoder, m *sink.Message) *logs.LogRecord {
	l := e.OTLP(m.Event)
	r := &logs.LogRecord{
		TimeUnixNano: nanos(m.Event.Time.UnixMicro()), ObservedTimeUnixNano: nanos(m.Event.ObservedTime()),
		SeverityNumber: logs.SeverityNumber(l.SeverityNumber), SeverityText: l.SeverityText, EventName: l.EventName,
		Body: textValue(l.Body),
	}
	if !s.o.Line {
		r.Body = textValue(string(m.Body))
	}
	for i := range l.Attributes {
		r.Attributes = append(r.Attributes, attribute(&l.Attributes[i]))
	}
	return r
}

// nanos returns microseconds as OTLP has them; 0, which is unknown, of what it
// cannot hold.
func nanos(micros int64) uint64 {
	if micros <= 0 || micros > math.MaxInt64/1000 {
		return 0
	}
	return uint64(time.Duration(micros) * time.Microsecond)
}

func attribute(a *event.Attribute) *common.KeyValue {
	switch a.Type {
	case event.IntAttribute:
		return &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: a.Int}}}
	case event.BoolAttribute:
		return &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_BoolValue{BoolValue: a.Bool}}}
	case event.TextsAttribute:
		list := &common.ArrayValue{}
		for _, t := range a.Texts {
			list.Values = append(list.Values, textValue(t))
		}
		return &common.KeyValue{Key: a.Key, Value: &common.AnyValue{Value: &common.AnyValue_ArrayValue{ArrayValue: list}}}
	}
	return text(a.Key, a.Text)
}

func text(key, value string) *common.KeyValue {
	return &common.KeyValue{Key: key, Value: textValue(value)}
}

func textValue(s string) *common.AnyValue {
	return &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(s, "\ufffd")}}
}

var errProto = errors.New("no protobuf")

// rejectedRecords returns partial_success.rejected_log_records of an
// ExportLogsServiceResponse: its package would bring gRPC with it.
func rejectedRecords(body []byte) (n int64, err error) {
	err = fields(body, func(number protowire.Number, typ protowire.Type, value []byte) error {
		if number != 1 || typ != protowire.BytesType {
			return nil
		}
		partial, _ := protowire.ConsumeBytes(value)
		return fields(partial, func(number protowire.Number, typ protowire.Type, value []byte) error {
			if number == 1 && typ == protowire.VarintType {
				v, _ := protowire.ConsumeVarint(value)
				n = int64(v)
			}
			return nil
		})
	})
	return n, err
}

// fields calls f for each field of a message.
func fields(b []byte, f func(protowire.Number, protowire.Type, []byte) error) error {
	for len(b) > 0 {
		number, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errProto
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(number, typ, b)
		if size < 0 {
			return errProto
		}
		if err := f(number, typ, b[:size]); err != nil {
			return err
		}
		b = b[size:]
	}
	return nil
}
