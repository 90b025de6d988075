package control

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A target means the rows that it names, and no others, as far as the columns
// that are left can tell.
func TestTargets(t *testing.T) {
	row := &chain.Row{Record: audit.Record{
		Topic: audit.Str("t"), TopicID: audit.Str("i"), Partition: audit.I64(2), Seq: audit.I64(7), KafkaOffset: audit.I64(9), Kind: audit.Str(audit.KindCall),
		RecordID: audit.Str("01KBCDEFGHJKMNPQRSTVWXYZ02"), SessionID: audit.Str("s"), TurnID: audit.Str("u"), StageID: audit.Str("g"), SeqWithinTurn: audit.I64(3), UserID: audit.Str("p"),
	}}
	gone := *row
	gone.UserID, gone.UserCommit = audit.Text{}, chain.NullHash{Valid: true}
	for text, want := range map[string][4]bool{ // the row, without user_id, erased hard; and what is meant of the row
		`{"recordId":"01kbcdefghjkmnpqrstvwxyz02"}`:                      {true, true, true, true},
		`{"recordId":"01KBCDEFGHJKMNPQRSTVWXYZ03"}`:                      {false, false, true, false},
		`{"sessionId":"s","turnId":"u","stageId":"g","seqWithinTurn":3}`: {true, true, true, true},
		`{"sessionId":"s","turnId":"u","stageId":"g","seqWithinTurn":4}`: {false, false, true, false},
		`{"turnId":"u"}`:    {true, true, true, true},
		`{"turnId":"x"}`:    {false, false, true, false},
		`{"sessionId":"s"}`: {true, true, true, true},
		`{"sessionId":"x"}`: {false, false, true, false},
		`{"userId":"p"}`:    {true, true, true, true},
		`{"userId":"x"}`:    {false, true, true, false},
		`{"topic":"t","topicId":"i","partition":2,"offset":9}`:     {true, true, true, true},
		`{"topic":"t","topicId":"i","partition":2,"offset":8}`:     {false, false, false, false},
		`{"topic":"t","topicId":"i","partition":3,"offset":9}`:     {false, false, false, false},
		`{"topic":"t","topicId":"i","partition":2,"seqBefore":8}`:  {true, true, true, true},
		`{"topic":"t","topicId":"i","partition":2,"seqBefore":7}`:  {false, false, false, false},
		`{"topic":"x","topicId":"i","partition":2,"seqBefore":99}`: {false, false, false, false},
	} {
		r, err := readRedaction([]byte(`{"target":` + text + `,"slots":"*","user":false,"hard":false}`))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := [4]bool{r.Target.Fits(row, false), r.Target.Fits(&gone, false), r.Target.Fits(&gone, true), r.Target.Means(row)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	for _, bad := range []string{`{}`, `{"turnId":"u","userId":"p"}`, `{"topic":"t","partition":2,"offset":9}`, `{"topic":"t","topicId":"i","partition":2}`, `{"stageId":"g"}`, `{"turnId":1}`, `{"recordId":"x"}`} {
		if r, err := readRedaction([]byte(`{"target":` + bad + `,"slots":"*","user":false,"hard":false}`)); err == nil {
			t.Errorf("%s is %+v", bad, r.Target)
		}
	}
}

// Whatever a target means fits it, so that a verifier accepts what a compactor
// does by it: rows of each kind, with and without what targets go by.
func TestWhatIsMeantFits(t *testing.T) {
	targets := []Target{
		{Record: ptr(firstID)},
		{Turn: ptr("u")},
		{Session: ptr("s")},
		{User: ptr("p")},
		{User: ptr("someone")},
		{Log: &lineT, Offset: ptr(int64(9))},
		{Log: &lineT, Before: ptr(int64(8))},
		{Session: ptr("s"), Turn: ptr("u"), Stage: ptr("g"), Within: ptr(int64(3))},
	}
	kinds := []string{
		audit.KindCall, audit.KindDecision, audit.KindRejected, audit.KindGap, audit.KindChainReset, audit.KindRedaction, audit.KindRedactionCancelled,
		audit.KindErasureDone, audit.KindRetentionCut, audit.KindLegalHold,
	}
	never := map[string]bool{audit.KindGap: true, audit.KindChainReset: true, audit.KindErasureDone: true, audit.KindRetentionCut: true, audit.KindRedactionCancelled: true}
	meant := 0
	for _, kind := range kinds {
		for _, user := range []audit.Text{{}, audit.Str("p"), audit.Str("q")} {
			row := &chain.Row{Record: audit.Record{
				Topic: audit.Str("t"), TopicID: audit.Str("i"), Partition: audit.I64(2), Seq: audit.I64(7), KafkaOffset: audit.I64(9), Kind: audit.Str(kind),
				RecordID: audit.Str(firstID), SessionID: audit.Str("s"), TurnID: audit.Str("u"), StageID: audit.Str("g"), SeqWithinTurn: audit.I64(3), UserID: user,
			}}
			row.UserCommit.Valid = user.Valid
			if kind == audit.KindRejected {
				row.Slots[audit.SlotRaw] = []byte(`{"userId":"\u0073omeone","x"`)
			}
			for i := range targets {
				means := targets[i].Means(row)
				if means && never[kind] {
					t.Errorf("%+v means a row of kind %s", targets[i], kind)
				}
				if means && !targets[i].Fits(row, false) {
					t.Errorf("%+v means a row of kind %s that does not fit it", targets[i], kind)
				}
				if means {
					meant++
				}
			}
		}
	}
	if meant < 40 {
		t.Errorf("only %d were meant", meant)
	}
}

// A request reaches what was there, and what comes late; what is made after it
// is not its business, unless it names the very row.
func TestReaches(t *testing.T) {
	const request, archived = 1000, 1100
	order := func(target Target, e Erasure) *Row {
		return &Row{Tenant: "acme", ID: firstID, Kind: audit.KindRedaction, CreatedAt: request, ArchivedAt: archived, Redaction: &Redaction{Target: target, Erasure: e}}
	}
	all, context := Erasure{All: true}, Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}
	row := func(kind string, created, kafka audit.Int, archivedAt int64) *chain.Row {
		return &chain.Row{Record: audit.Record{
			TenantID: audit.Str("acme"), Kind: audit.Str(kind), RecordID: audit.Str(otherID), UserID: audit.Str("p"),
			CreatedAt: created, KafkaTimestamp: kafka, ArchivedAt: audit.I64(archivedAt),
		}}
	}
	none := audit.Int{}
	user, record := Target{User: ptr("p")}, Target{Record: ptr(otherID)}
	other := order(user, all)
	other.Tenant = "globex"
	for name, c := range map[string]struct {
		order *Row
		row   *chain.Row
		want  bool
	}{
		"was there":                        {order(user, all), row(audit.KindCall, audit.I64(10), none, 20), true},
		"was there, of a clock ahead":      {order(user, all), row(audit.KindCall, audit.I64(5000), none, archived), true},
		"late":                             {order(user, all), row(audit.KindCall, audit.I64(request), none, 5000), true},
		"made after it":                    {order(user, all), row(audit.KindCall, audit.I64(request+1), none, archived+1), false},
		"late, by Kafka's timestamp":       {order(user, all), row(audit.KindRejected, none, audit.I64(request), 5000), true},
		"made after it, by Kafka's":        {order(user, all), row(audit.KindRejected, none, audit.I64(request+1), 5000), false},
		"without any time":                 {order(user, all), row(audit.KindRejected, none, none, 5000), false},
		"the very row, made after it":      {order(record, all), row(audit.KindCall, audit.I64(request+1), none, 5000), true},
		"another tenant":                   {other, row(audit.KindCall, audit.I64(10), none, 20), false},
		"a redaction's context":            {order(record, context), row(audit.KindRedaction, audit.I64(10), none, 20), true},
		"more of a redaction":              {order(record, all), row(audit.KindRedaction, audit.I64(10), none, 20), false},
		"a hold's context":                 {order(record, context), row(audit.KindLegalHold, audit.I64(10), none, 20), true},
		"a receipt's context":              {order(record, context), row(audit.KindErasureDone, audit.I64(10), none, 20), false},
		"a redaction, by whom it is about": {order(user, context), row(audit.KindRedaction, audit.I64(10), none, 20), false},
		"an order whose context is gone":   {&Row{Tenant: "acme", Kind: audit.KindRedaction}, row(audit.KindCall, audit.I64(10), none, 20), false},
	} {
		if got := c.order.Reaches(c.row); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// An id is found in what it stands in, however that was escaped, and nowhere
// else.
func TestMentions(t *testing.T) {
	for name, c := range map[string]struct {
		bytes, text string
		want        bool
	}{
		"plain":                       {`{"userId":"dana@acme"}`, "dana@acme", true},
		"not there":                   {`{"userId":"dana@acme"}`, "dora@acme", false},
		"nothing in nothing":          {``, "dana@acme", false},
		"the empty id":                {`{"userId":""}`, "", false},
		"no JSON":                     {"\xff\x00dana@acme\xfe", "dana@acme", true},
		"cut in the middle":           {`{"userId":"dana@ac`, "dana@acme", false},
		"lower digits":                {`{"userId":"\u0064\u0061\u006e\u0061\u0040acme"}`, "dana@acme", true},
		"upper digits":                {`{"userId":"dana\u004Dacme"}`, "danaMacme", true},
		"mixed digits":                {`{"userId":"dana\u004dacme\u006D"}`, "danaMacmem", true},
		"one letter":                  {`{"userId":"d\u0061na@acme"}`, "dana@acme", true},
		"a solidus":                   {`{"userId":"acme\/dana"}`, "acme/dana", true},
		"a quote":                     {`{"userId":"dana \"d\" acme"}`, `dana "d" acme`, true},
		"a backslash":                 {`{"userId":"ACME\\dana"}`, `ACME\dana`, true},
		"a backslash as a code":       {`{"userId":"ACME\u005cdana"}`, `ACME\dana`, true},
		"a control character":         {`{"userId":"dana\tacme"}`, "dana\tacme", true},
		"an umlaut, plain":            {`{"userId":"jürgen"}`, "jürgen", true},
		"an umlaut, escaped":          {`{"userId":"j\u00fcrgen"}`, "jürgen", true},
		"a pair of surrogates":        {`{"userId":"user \ud83d\ude00"}`, "user 😀", true},
		"a pair of upper digits":      {`{"userId":"user \uD83D\uDE00"}`, "user 😀", true},
		"half of a pair":              {`{"userId":"user \ud83d\u0041"}`, "user 😀", false},
		"a lone half at the end":      {`"user \ud83d`, "user 😀", false},
		"JSON in JSON":                {`{"body":"{\"userId\":\"dana@acme\",\"x\":\"\\u0064ana@acme2\"}"}`, "dana@acme2", true},
		"JSON in JSON in JSON":        {`{"body":"\"\\\"\\\\u0064ana@acme\\\"\""}`, "dana@acme", true},
		"an escape that is none":      {`{"userId":"\xdana@acme\u12"}`, "dana@acme", true},
		"an escaped escape":           {`{"userId":"\\u0064ana@acme"}`, "dana@acme", true}, // rather one row too many
		"a short id":                  {`{"userId":"42"}`, "42", true},
		"a short id in a number":      {`{"n":1420}`, "42", false},
		"a short id before a letter":  {`{"n":"42x"}`, "42", false},
		"a short id behind a letter":  {`{"n":"é42"}`, "42", false},
		"a short id behind an escape": {`{"n":"\n42"}`, "42", true},
		"a short id, later":           {`{"n":1420,"u":42}`, "42", true},
		"a short id with a sign":      {`{"n":"x-1"}`, "-1", true},
		"a long id in a word":         {`{"n":"xxdana42acmexx"}`, "dana42acme", true},
	} {
		if got := Mentions([]byte(c.bytes), c.text); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A user's rejected rows are found by their bytes, their key and their headers,
// as the decoder keeps them.
func TestRejectsOfAUser(t *testing.T) {
	for name, c := range map[string]struct {
		message audit.Message
		want    bool
	}{
		"in the value":             {audit.Message{Value: []byte(`{"principal":{"userId":"dana@acme"`)}, true},
		"escaped in the value":     {audit.Message{Value: []byte(`{"principal":{"userId":"dan\u0061@acme"`)}, true},
		"in the key":               {audit.Message{Key: []byte("dana@acme"), Value: []byte(`{`)}, true},
		"in a key that is no text": {audit.Message{Key: []byte("\xffdana@acme"), Value: []byte(`{`)}, true},
		"in a header":              {audit.Message{Headers: []audit.MessageHeader{{Name: "x"}, {Name: "user", Value: []byte("dana@acme")}}, Value: []byte(`{`)}, true},
		"in a header that is none": {audit.Message{Headers: []audit.MessageHeader{{Name: "user", Value: []byte("\xfe\\u0064ana@acme")}}, Value: []byte(`{`)}, true},
		"in the name of a header":  {audit.Message{Headers: []audit.MessageHeader{{Name: "dana@acme"}}, Value: []byte(`{`)}, true},
		"nowhere":                  {audit.Message{Key: []byte("k"), Headers: []audit.MessageHeader{{Name: "user", Value: []byte("dora@acme")}}, Value: []byte(`{`)}, false},
		"a tombstone":              {audit.Message{}, false},
	} {
		row := &chain.Row{}
		if why := (&audit.Decoder{}).Decode(&row.Record, &c.message); why == nil {
			t.Fatalf("%s: it is no reject", name)
		}
		target := Target{User: ptr("dana@acme")}
		if got := target.Means(row); got != c.want {
			t.Errorf("%s: %v, want %v: %s", name, got, c.want, row.Slots[audit.SlotContext])
		}
	}
}

// An index finds what asking each redaction finds, and a Governance hides what
// they take together.
func TestGates(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	target := func() Target {
		switch rng.IntN(7) {
		case 0:
			return Target{Record: ptr(pick(firstID, otherID))}
		case 1:
			return Target{Session: ptr(pick("s", "t"))}
		case 2:
			return Target{Turn: ptr(pick("u", "v"))}
		case 3:
			return Target{User: ptr(pick("dana@acme", "p"))}
		case 4:
			return Target{Log: &lineT, Offset: ptr(rng.Int64N(3))}
		case 5:
			return Target{Log: &lineT, Before: ptr(rng.Int64N(3))}
		}
		return Target{Session: ptr(pick("s", "t")), Turn: ptr(pick("u", "v")), Stage: ptr("g"), Within: ptr(rng.Int64N(2))}
	}
	erasures := []Erasure{{All: true}, {User: true}, {Slots: chain.SlotSetOf(audit.SlotPrompts)}, {All: true, User: true, Hard: true}}
	text := func(of ...string) audit.Text {
		if rng.IntN(3) == 0 {
			return audit.Text{}
		}
		return audit.Str(pick(of...))
	}
	hidden := 0
	for range 300 {
		g, orders := New(), []*Row{}
		for n := range rng.IntN(12) {
			r := &Row{
				Tenant: pick("acme", "globex"), ID: string(rune('A' + n)), Kind: audit.KindRedaction, CreatedAt: rng.Int64N(10), ArchivedAt: rng.Int64N(10), Anchored: true,
				Redaction: &Redaction{Target: target(), Erasure: erasures[rng.IntN(len(erasures))]},
			}
			g.Add(r)
			if cancelled := rng.IntN(4) == 0; cancelled {
				g.Add(&Row{Tenant: r.Tenant, ID: "c" + r.ID, Kind: audit.KindRedactionCancelled, Anchored: true, Cancel: &Cancel{RedactionID: r.ID}})
				continue
			}
			orders = append(orders, r)
		}
		g.Seal()
		for range 20 {
			row := &chain.Row{Record: audit.Record{
				TenantID: audit.Str("acme"), Topic: audit.Str("t"), TopicID: audit.Str("i"), Partition: audit.I64(2), Seq: audit.I64(rng.Int64N(3)), KafkaOffset: audit.I64(rng.Int64N(3)),
				Kind: audit.Str(pick(audit.KindCall, audit.KindRejected, audit.KindGap)), RecordID: text(firstID, otherID), SessionID: text("s", "t"), TurnID: text("u", "v"), StageID: text("g"),
				SeqWithinTurn: audit.I64(rng.Int64N(2)), UserID: text("dana@acme", "p"), CreatedAt: audit.I64(rng.Int64N(20)), ArchivedAt: audit.I64(rng.Int64N(20)),
			}}
			row.Slots[audit.SlotRaw] = []byte(pick(`{"u":"d\u0061na@acme"`, "{"))
			var want Erasure
			n := 0
			for _, o := range orders {
				if o.Reaches(row) {
					want = want.Union(o.Redaction.Erasure)
					n++
				}
			}
			got, hides := g.Gate(row)
			if got != want || hides != (n > 0) || len(g.Gating(row)) != n {
				t.Fatalf("%+v is hidden by %d redactions, %+v; want %d, %+v", row.Record, len(g.Gating(row)), got, n, want)
			}
			hidden += n
		}
	}
	if hidden < 500 {
		t.Errorf("only %d were hidden", hidden)
	}
}

// An id is found however it is escaped, in any mixture, in strings within
// strings; what differs in one rune is not.
func TestAnyEscapingIsFound(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	letters := []rune(`abcXYZ019@./-_+ "\'\n\t\u2028éß東😀𝒳<>&`)
	for range 3000 {
		id := make([]rune, shortID+rng.IntN(12))
		for i := range id {
			id[i] = letters[rng.IntN(len(letters))]
		}
		other := slices.Clone(id)
		other[rng.IntN(len(other))] = 'Q'
		text := string(id)
		for range rng.IntN(4) {
			text = `{"user":"` + escapeAny(rng, text) + `"}`
		}
		raw := []byte("\xff" + text)
		if !Mentions(raw, string(id)) {
			t.Fatalf("%q is not found in %q", string(id), raw)
		}
		if Mentions(raw, string(other)) {
			t.Fatalf("%q is found in %q", string(other), raw)
		}
	}
}

// escapeAny writes the text of a JSON string, each rune in one of the ways that
// JSON has for it.
func escapeAny(rng *rand.Rand, text string) string {
	var b strings.Builder
	unit := func(r uint16) {
		format := []string{`\u%04x`, `\u%04X`}[rng.IntN(2)]
		fmt.Fprintf(&b, format, r)
	}
	for _, r := range text {
		short, ok := map[rune]string{'"': `\"`, '\\': `\\`, '/': `\/`, '\n': `\n`, '\t': `\t`}[r]
		must := r == '"' || r == '\\' || r < 0x20
		switch n := rng.IntN(3); {
		case n == 0 && !must:
			b.WriteRune(r)
		case n == 1 && ok, must && rng.IntN(2) == 0 && ok:
			b.WriteString(short)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			unit(uint16(hi))
			unit(uint16(lo))
		default:
			unit(uint16(r))
		}
	}
	return b.String()
}
