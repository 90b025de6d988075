package event

// SemConvVersion is the version of OpenTelemetry's semantic conventions that
// [OTLP] follows: the last one in which those for GenAI are part of them.
// SemConvSchema is its schema URL, for who sends logs.
const (
	SemConvVersion = "1.41.1"
	SemConvSchema  = "https://opentelemetry.io/schemas/" + SemConvVersion
)

// An Attribute is one attribute of an OTLP log record. Exactly one of its
// values is set, as Type says.
type Attribute struct {
	Key   string
	Type  AttributeType
	Text  string
	Int   int64
	Bool  bool
	Texts []string
}

// An AttributeType says which value an attribute has.
type AttributeType int

// The types of attributes.
const (
	TextAttribute AttributeType = iota
	IntAttribute
	BoolAttribute
	TextsAttribute
)

// A LogRecord is an event as an OTLP log record: what is to be put into its
// fields. Its time is the event's, its observed time archived_at.
type LogRecord struct {
	EventName      string // "ledgerlake." and the kind
	SeverityNumber int    // SeverityNumber of OTLP
	SeverityText   string
	Body           string // a line for people; who sends may put the event's JSON there
	Attributes     []Attribute
}

// otlp is the attributes of a log record.
var otlp = append([]field{
	{path: "gen_ai.operation.name", source: genAIOperation},
	{path: "gen_ai.provider.name", source: column("family")},
	{path: "gen_ai.request.model", source: genAIRequestModel},
	{path: "gen_ai.response.model", source: genAIResponseModel},
	{path: "gen_ai.response.finish_reasons", source: source{"[`finish_reason`]", func(v *view) value {
		if !v.r.FinishReason.Valid {
			return value{}
		}
		return listOf(v.r.FinishReason.S)
	}}, typ: listValue},
	{path: "gen_ai.usage.input_tokens", source: column("input_tokens"), typ: numberValue},
	{path: "gen_ai.usage.output_tokens", source: column("output_tokens"), typ: numberValue},
	{path: "gen_ai.conversation.id", source: column("session_id")},
	{path: "gen_ai.tool.name", source: column("tool_name")},
	{path: "session.id", source: column("session_id")},
	{path: "user.id", source: column("user_id")},
	{path: "error.type", source: source{"`status`, where the outcome is a failure; of a reject its reason", func(v *view) value {
		switch {
		case v.outcome != failure:
			return value{}
		case v.reason != "":
			return textOf(v.reason)
		}
		return text(v.r.Status)
	}}},
	{path: "http.response.status_code", source: column("http_status"), typ: numberValue},
	{path: "ledgerlake.kind", source: kindName},
	{path: "ledgerlake.id", source: eventID},
	{path: "ledgerlake.tenant", source: tenant, limit: unlimited},
	{path: "ledgerlake.status", source: column("status")},
}, unmapped("ledgerlake.")...)

// OTLP returns an event as a log record of OTLP. Attributes that the event has
// no value for are not there; the order is always the same.
func (e *Encoder) OTLP(ev *Event) LogRecord {
	v := &e.view
	v.set(&e.o, ev)
	level := severities[v.severity]
	l := LogRecord{
		EventName: productName + "." + eventName(v), SeverityNumber: level.otlp, SeverityText: level.otlpText,
		Body: v.message(),
	}
	for i := range otlp {
		if x := otlp[i].get(v); x.typ != none {
			l.Attributes = append(l.Attributes, attribute(&otlp[i], &x, ev.Kind == KindPointer))
		}
	}
	return l
}

// eventName is the kind, where it is one that we know: names are few.
func eventName(v *view) string {
	if v.mapped == &unknownKind {
		return string(v.ev.Kind)
	}
	return v.mapped.name
}

func attribute(f *field, x *value, pointer bool) Attribute {
	a := Attribute{Key: f.path}
	switch x.typ {
	case numberValue:
		a.Type, a.Int = IntAttribute, x.n
	case truthValue:
		a.Type, a.Bool = BoolAttribute, x.n != 0
	case listValue:
		a.Type, a.Texts = TextsAttribute, x.l
	default:
		a.Text = x.plain()
		if pointer && f.limit != unlimited {
			a.Text, _ = fit(a.Text, pointerLimit, appendInside)
		}
	}
	return a
}

// ObservedTime returns when a row was archived, in microseconds since 1970, and
// the event's own time of what is no row.
func (ev *Event) ObservedTime() int64 {
	if ev.Row != nil && ev.Row.ArchivedAt.Valid {
		return ev.Row.ArchivedAt.N
	}
	return ev.Time.UnixMicro()
}
