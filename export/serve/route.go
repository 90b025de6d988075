package serve

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A route is one row of the table: what is answered at a path, and what the
// OpenAPI document says of it.
type route struct {
	name    string // in the document: operationId
	path    string // segments in braces take any text
	summary string
	about   string
	query   []parameter
	header  []parameter
	open    bool // no token is asked for
	stream  bool // it has no end of its own, or a far one
	answers []answer
	serve   func(*Server, *call) error
}

// A parameter is a member of the query, or a header, that a route knows.
type parameter struct {
	name, about, example string
	kind                 string // of JSON schema: string or integer
	format               string // date-time or ""
	required             bool
}

// An answer is what a route gives where all is well, or a problem.
type answer struct {
	status int
	media  string
	schema string // in components; "" is text
	about  string
}

const (
	mediaJSON   = "application/json"
	mediaNDJSON = "application/x-ndjson"
	mediaEvents = "text/event-stream"
	mediaHTML   = "text/html; charset=utf-8"
)

var sessionOfTurn = parameter{name: "session", kind: "string", about: "Only records of this session. Without it, of any: a turn's id should be unique."}

// routes returns the table. It is a func as its rows lead to the handlers, and
// one of these to the table.
func routes() []route {
	return slices.Concat([]route{
		{
			name: "listTenants", path: "/v1/tenants", summary: "The tenants that the token is good for",
			about:   "A token for all tenants gets those that have a log now.",
			answers: []answer{{200, mediaJSON, "Tenants", "ids, in the order of their bytes"}},
			serve:   (*Server).tenants,
		},
		{
			name: "listRecent", path: "/v1/tenants/{tenant}/recent", summary: "The newest sessions and turns of a tenant",
			about:   "Made from the newest rows of each of its logs, so that it is cheap: what is older is found by its id alone.",
			answers: []answer{{200, mediaJSON, "Recent", "newest first"}},
			serve:   (*Server).recent,
		},
	}, recordRoutes(), streamRoutes(), []route{
		{
			name: "openapi", path: "/v1/openapi.json", summary: "This document", open: true,
			answers: []answer{{200, mediaJSON, "Document", "OpenAPI 3.1"}},
			serve:   (*Server).openapi,
		},
		{
			name: "health", path: "/healthz", summary: "Whether the server lives", open: true,
			answers: []answer{{200, mediaJSON, "Health", "it does"}},
			serve:   (*Server).health,
		},
	}, pageRoutes())
}

func recordRoutes() []route {
	return []route{
		{
			name: "getTurn", path: "/v1/tenants/{tenant}/turns/{turn}", summary: "All records of a turn",
			about:   "In the order of seqWithinTurn. A turn that is not known has no records: that is no error.",
			query:   []parameter{sessionOfTurn},
			answers: []answer{{200, mediaJSON, "Records", "seqWithinTurn ascending"}},
			serve:   (*Server).turn,
		},
		{
			name: "getTimeline", path: "/v1/tenants/{tenant}/turns/{turn}/timeline", summary: "A turn, prepared for people",
			about:   "What the timeline page shows: steps in order, fallbacks and cascades, subagents, sums, what was erased, decisions not to act.",
			query:   []parameter{sessionOfTurn},
			answers: []answer{{200, mediaJSON, "Timeline", "steps in order"}},
			serve:   (*Server).timeline,
		},
		{
			name: "getSession", path: "/v1/tenants/{tenant}/sessions/{session}", summary: "Records of a session, newest first",
			about: "By recordId. next is what before has to be for the records that follow; null at the end.",
			query: []parameter{
				{name: "limit", kind: "integer", about: "How many at most: 1 to 1000; 100 if it is left out.", example: "100"},
				{name: "before", kind: "string", about: "Only records whose recordId is less than this ULID.", example: "01KBCDEFGHJKMNPQRSTVWXYZ01"},
			},
			answers: []answer{{200, mediaJSON, "Records", "recordId descending"}},
			serve:   (*Server).session,
		},
		{
			name: "listTurns", path: "/v1/tenants/{tenant}/sessions/{session}/turns", summary: "The turns of a session, newest first",
			about:   "What the timeline page shows of a session: sums of each turn.",
			answers: []answer{{200, mediaJSON, "Turns", "newest first"}},
			serve:   (*Server).turns,
		},
		{
			name: "getRecord", path: "/v1/tenants/{tenant}/records/{record}", summary: "A record",
			about:   recordAbout,
			answers: []answer{{200, mediaJSON, "Record", "as it was sent, and $ledgerlake, which says where it stands"}, {404, "", "", "no such record"}},
			serve:   (*Server).record,
		},
		{
			name: "getProof", path: "/v1/tenants/{tenant}/records/{record}/proof", summary: "The proof of a record",
			about: "A bundle that `ledgerlake-verify proof` checks without the archive. It is refused where it would have to name other tenants " +
				"that share the partition. " + recordAbout,
			answers: []answer{
				{200, mediaJSON, "Bundle", "a proof bundle"},
				{403, "", "", "the proof would name other tenants"},
				{404, "", "", "no such record"},
				{409, "", "", "no anchor covers it yet"},
			},
			serve: (*Server).proof,
		},
		{
			name: "checkRecord", path: "/v1/tenants/{tenant}/records/{record}/check", summary: "Whether the proof of a record checks",
			about:   "The server makes the proof and checks it, as `ledgerlake-verify row` does. Who does not trust the server takes the proof. " + recordAbout,
			answers: []answer{{200, mediaJSON, "Check", "what the proof is worth"}, {404, "", "", "no such record"}},
			serve:   (*Server).check,
		},
	}
}

const recordAbout = "A record is named by its recordId, or by its place: topicId:partition:seq, as `$ledgerlake` says it."

func streamRoutes() []route {
	return []route{
		{
			name: "getRange", path: "/v1/tenants/{tenant}/range", summary: "All records created in a stretch of time",
			about: "One JSON object a line, log by log in the order of the chain; late records are there too. An answer that is cut off, " +
				"or whose last line has only the member $problem, is not complete.",
			query: []parameter{
				{name: "from", kind: "string", format: "date-time", required: true, about: "createdAt at or after it.", example: "2026-05-01T00:00:00Z"},
				{name: "to", kind: "string", format: "date-time", required: true, about: "createdAt before it.", example: "2026-06-01T00:00:00Z"},
			},
			stream:  true,
			answers: []answer{{200, mediaNDJSON, "Record", "one record a line"}},
			serve:   (*Server).stretch,
		},
		{
			name: "tail", path: "/v1/tenants/{tenant}/tail", summary: "Records as they are archived",
			about: "Server-sent events. Each event `record` has a record as data, and as id the position behind it in all logs of the tenant: " +
				"sent back as Last-Event-ID it goes on there, and nothing is left out. Event `position` has an id alone, event `problem` ends the stream.",
			query: []parameter{
				{name: "from", kind: "string", about: "`now`, or `start` for all there is, where there is no Last-Event-ID; `now` if it is left out.", example: "now"},
			},
			header:  []parameter{{name: "Last-Event-ID", kind: "string", about: "The id of the last event that was received."}},
			stream:  true,
			answers: []answer{{200, mediaEvents, "", "events until one side ends it"}, {409, "", "", "the position is not one of this archive"}},
			serve:   (*Server).tail,
		},
	}
}

// A matcher finds routes by paths.
type matcher struct{ routes []matched }

type matched struct {
	route
	segments []string
}

func newMatcher(all []route) *matcher {
	m := &matcher{}
	for _, r := range all {
		m.routes = append(m.routes, matched{r, strings.Split(r.path, "/")})
	}
	return m
}

// wildcard returns the name of a segment in braces.
func wildcard(segment string) (name string, ok bool) {
	if len(segment) < 3 || segment[0] != '{' {
		return "", false
	}
	return segment[1 : len(segment)-1], true
}

// match finds the route of a path as it was sent. The path is split before it is
// unescaped, and neither cleaned nor folded: a segment is the text that it says,
// and a tenant's id may have any character.
func (m *matcher) match(u *url.URL) (*route, map[string]string) {
	got := strings.Split(u.EscapedPath(), "/")
	for i, s := range got {
		text, err := url.PathUnescape(s)
		if err != nil {
			return nil, nil
		}
		got[i] = text
	}
	for i := range m.routes {
		if vars, ok := m.routes[i].match(got); ok {
			return &m.routes[i].route, vars
		}
	}
	return nil, nil
}

func (r *matched) match(got []string) (map[string]string, bool) {
	if len(got) != len(r.segments) {
		return nil, false
	}
	vars := map[string]string{}
	for i, s := range r.segments {
		switch name, ok := wildcard(s); {
		case ok && got[i] != "":
			vars[name] = got[i]
		case got[i] != s:
			return nil, false
		}
	}
	return vars, true
}

// readOnly reports whether a method only reads.
func readOnly(method string) bool { return method == http.MethodGet || method == http.MethodHead }

// parameters reads a query: what is not known, or stands twice, is refused, so
// that a slip of the pen does not give another answer than was asked for. The
// text of what is refused is not repeated: it may be a secret in a wrong place.
func (r *route) parameters(u *url.URL) (map[string]string, error) {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, errRequest.with("the query cannot be read")
	}
	got := map[string]string{}
	for name, all := range values {
		known := slices.ContainsFunc(r.query, func(p parameter) bool { return p.name == name })
		switch {
		case !known:
			return nil, errRequest.with("the query has a member that is not known here: " + r.knows())
		case len(all) > 1:
			return nil, errRequest.with("the query has a member twice")
		}
		got[name] = all[0]
	}
	for _, p := range r.query {
		if p.required && got[p.name] == "" {
			return nil, errRequest.with("the query lacks " + p.name)
		}
	}
	return got, nil
}

// knows says which members of a query a route knows.
func (r *route) knows() string {
	if len(r.query) == 0 {
		return "it takes none"
	}
	var names []string
	for _, p := range r.query {
		names = append(names, p.name)
	}
	return "it takes " + strings.Join(names, ", ")
}
