package audit

import (
	"slices"
	"testing"
)

// TestCoordinates lists messages in groups: those of one group are the same
// record, those of two groups never.
func TestCoordinates(t *testing.T) {
	decision := header("ledgerlake-kind", "decision")
	control := &Decoder{Control: true}
	groups := [][]*Record{
		{
			accept(t, &Decoder{}, message(bareCall)),
			accept(t, &Decoder{}, message(as(bareCall, "recordId", `"01KRNR3ZG00000000000000009"`))),
			accept(t, &Decoder{}, message(as(bareCall, "createdAt", `"2027-05-15T12:00:00.000Z"`))),
			accept(t, &Decoder{}, message(as(bareCall, "seqWithinTurn", `0.0`))),
			accept(t, &Decoder{}, message(with(bareCall, `"toolName":"x","principal":{"userId":"user-42"}`))),
			accept(t, &Decoder{}, &Message{Value: []byte(bareCall), Topic: "other", Offset: 99}),
		},
		{accept(t, &Decoder{}, message(as(bareCall, "sessionId", `"s2"`)))},
		{accept(t, &Decoder{}, message(as(bareCall, "turnId", `"t2"`)))},
		{accept(t, &Decoder{}, message(as(bareCall, "stageId", `"tool-loop"`)))},
		{accept(t, &Decoder{}, message(as(bareCall, "seqWithinTurn", `1`)))},
		{accept(t, &Decoder{}, message(as(bareCall, "tenantId", `"globex"`)))},
		// Boundaries do not slide.
		{accept(t, &Decoder{}, message(as(as(bareCall, "sessionId", `"st"`), "turnId", `""`)))},
		{accept(t, &Decoder{}, message(as(as(bareCall, "sessionId", `""`), "turnId", `"st"`)))},
		{accept(t, &Decoder{}, message(as(as(bareCall, "sessionId", `"s,s1:t"`), "turnId", `""`)))},
		// A decision and an entry of equal ids are not the call, nor each other.
		{
			accept(t, &Decoder{}, message(as(bareDecision, "decisionId", `"t"`), decision)),
			accept(t, &Decoder{}, message(with(as(bareDecision, "decisionId", `"t"`), `"verdict":"no","sessionId":"s"`), decision)),
		},
		{accept(t, &Decoder{}, message(bareDecision, decision))},
		{
			accept(t, &Decoder{}, message(as(as(bareEntry, "traceId", `"t"`), "seq", "0"))),
			accept(t, &Decoder{}, message(as(as(as(bareEntry, "traceId", `"t"`), "seq", "0"), "kind", `"ToolCall"`))),
		},
		{accept(t, &Decoder{}, message(as(as(as(bareEntry, "traceId", `"t"`), "seq", "0"), "kind", `"llm-request"`)))},
		{accept(t, &Decoder{}, message(as(as(bareEntry, "traceId", `"t"`), "seq", "1")))},
		{accept(t, &Decoder{}, message(`{"tenantId":"acme","kind":"ChainReset","traceId":"t","seq":0}`))},
		{
			accept(t, control, message(bareControl)),
			accept(t, control, message(as(bareControl, "kind", `"legal-hold"`))),
			accept(t, control, message(as(bareControl, "recordId", `"01krnr3zg00000000000000002"`))),
		},
		{accept(t, control, message(as(bareControl, "recordId", `"01KRNR3ZG00000000000000003"`)))},
	}
	seen := map[Fingerprint]int{}
	for i, group := range groups {
		for j, r := range group {
			print, ok := r.Coordinates()
			if other, taken := seen[print]; !ok || taken && other != i || j > 0 && !taken {
				t.Errorf("group %d, message %d: ok %v, also in group %d", i, j, ok, other)
			}
			seen[print] = i
			if stored, _ := storedCopy(r).Coordinates(); stored != print {
				t.Errorf("group %d, message %d: a stored row has others", i, j)
			}
		}
	}
}

// A row without coordinates says so: it must never be taken for a repeat.
func TestRowsWithoutCoordinates(t *testing.T) {
	var rejected, gap, erased Record
	new(Decoder).Decode(&rejected, message(as(bareCall, "stageId", "7")))
	Gap(&gap, 1, 2, "lost")
	erased = *accept(t, &Decoder{}, message(bareCall))
	erased.SessionID, erased.TurnID, erased.StageID, erased.SeqWithinTurn, erased.RecordID = Text{}, Text{}, Text{}, Int{}, Text{}
	conflict := accept(t, &Decoder{}, message(bareCall))
	Conflict(conflict, message(bareCall), "")
	decision := accept(t, &Decoder{}, message(bareDecision, header("ledgerlake-kind", "decision")))
	decision.TurnID = Text{}
	control := accept(t, &Decoder{Control: true}, message(bareControl))
	control.RecordID = Text{}
	reset := Record{TenantID: Str("acme"), Kind: Str(KindChainReset), TurnID: Str("t"), SeqWithinTurn: I64(1)}
	admin := accept(t, &Decoder{}, message(`{"tenantId":"acme","kind":"QueueDropped","seq":1}`))
	for i, r := range []*Record{{}, &rejected, &gap, &erased, conflict, decision, control, &reset, admin} {
		if print, ok := r.Coordinates(); ok || print != (Fingerprint{}) {
			t.Errorf("row %d (%s) has coordinates", i, r.Kind.S)
		}
	}
}

// Coordinates depend on the columns that CoordinateColumns lists, and on no
// other.
func TestCoordinateColumns(t *testing.T) {
	var full Record
	for _, r := range []*Record{
		accept(t, &Decoder{}, message(usualCall)),
		accept(t, &Decoder{}, message(bareDecision, header("ledgerlake-kind", "decision"))),
		accept(t, &Decoder{}, message(bareEntry)),
		accept(t, &Decoder{Control: true}, message(bareControl)),
	} {
		full = *r
		var selected Record
		for _, c := range Header {
			if !slices.Contains(CoordinateColumns, c.Name) {
				continue
			}
			if c.Text != nil {
				*c.Text(&selected) = *c.Text(r)
			} else {
				*c.Int(&selected) = *c.Int(r)
			}
		}
		want, _ := full.Coordinates()
		if got, ok := selected.Coordinates(); !ok || got != want {
			t.Errorf("%s: other coordinates from the listed columns alone", r.Kind.S)
		}
	}
}

// The content is columns 8 to 30 but two, the user and all slots: changing one
// of these changes the hash, changing anything else does not.
func TestContentIsWhatItShouldBe(t *testing.T) {
	base := accept(t, &Decoder{}, message(usualCall))
	want := base.ContentHash()
	for i, c := range Header {
		r := *base
		if c.Text != nil {
			*c.Text(&r) = Str(c.Text(&r).S + "x")
		} else {
			*c.Int(&r) = I64(c.Int(&r).N + 1)
		}
		content := i+1 >= 8 && i+1 <= 30 && c.Name != "record_id" && c.Name != "created_at"
		if changed := r.ContentHash() != want; changed != content {
			t.Errorf("%s: changed %v, want %v", c.Name, changed, content)
		}
		if c.Text != nil {
			*c.Text(&r) = Text{}
		} else {
			*c.Int(&r) = Int{}
		}
		null := r.ContentHash()
		if c.Text != nil {
			*c.Text(&r) = Str("")
		} else {
			*c.Int(&r) = I64(0)
		}
		if told := r.ContentHash() != null; told != content {
			t.Errorf("%s: null and zero are told apart %v, want %v", c.Name, told, content)
		}
	}
	for s := range NumSlots {
		r := *base
		r.Slots[s] = []byte(`{"other":1}`)
		if r.ContentHash() == want {
			t.Errorf("slot %s is not content", s)
		}
		r.Slots[s] = nil
		null := r.ContentHash()
		if r.Slots[s] = []byte{}; r.ContentHash() == null {
			t.Errorf("slot %s: null and empty have one content", s)
		}
	}
	r := *base
	r.UserID = Text{}
	if r.ContentHash() == want {
		t.Error("the user is not content")
	}
	r = *base
	r.Derived, r.TopicID, r.Epoch, r.RepeatOf = Derived{}, Str("x"), I64(1), I64(2)
	if r.ContentHash() != want {
		t.Error("derived columns are content")
	}
	if storedCopy(base).ContentHash() != want {
		t.Error("a stored row has another content")
	}
}

// A producer that sends a record again may give it another recordId, time, key
// and headers, in any of their forms.
func TestRepeatsHaveOneContent(t *testing.T) {
	call := with(bareCall, `"foo":1`)
	decision := header("ledgerlake-kind", "decision")
	for name, repeats := range map[string][]*Message{
		"call": {
			message(call),
			message(as(call, "recordId", `"01KRNR3ZG00000000000000009"`)),
			message(as(call, "recordId", `"01krnr3zg00000000000000009"`)),
			message(as(call, "createdAt", `"2027-05-15T12:00:00Z"`)),
			message(as(call, "createdAt", `"2027-05-15T12:00:00.1234567+02:00"`)),
			message(call, header("traceparent", "00-1")),
			message(call, header("tenant", "acme"), header("traceparent", "00-2")),
			{Value: []byte(call), Key: []byte{0xff}},
			{Value: []byte(call), Offset: 99, Topic: "other"},
		},
		"bare call": {message(bareCall), message(as(bareCall, "createdAt", `"2027-05-15T12:00:00Z"`), header("a", "b"))},
		"decision":  {message(bareDecision, decision), message(as(bareDecision, "timestamp", "1778846400001"), decision), message(as(bareDecision, "timestamp", `"2026-05-15T12:00:00.5Z"`), decision)},
		"entry":     {message(bareEntry), message(as(bareEntry, "ts", "1778846400001")), message(as(bareEntry, "ts", `"2026-05-15T12:00:00.5Z"`))},
	} {
		want := accept(t, &Decoder{}, repeats[0]).ContentHash()
		for i, m := range repeats {
			if accept(t, &Decoder{}, m).ContentHash() != want {
				t.Errorf("%s, repeat %d has another content", name, i)
			}
		}
	}
}

// What differs in any other way has another content; boundaries do not slide,
// and a member that is like one of those left aside is not left aside.
func TestOtherContentIsTold(t *testing.T) {
	values := []string{
		bareCall,
		with(bareCall, `"foo":1`),
		with(bareCall, `"foo":2`),
		with(bareCall, `"foo":null`),
		with(bareCall, `"timestamp":1778846400000`),
		with(bareCall, `"timestamp":1778846400001`),
		with(bareCall, `"$key":"k"`),
		with(bareCall, `"$headers":[]`),
		with(bareCall, `"call":{"recordId":1}`),
		with(bareCall, `"a":1,"b":2`),
		with(bareCall, `"a":[1,"b",2]`),
		with(bareCall, `"principal":{"userId":"a|b"},"outcome":{"finishReason":"c"}`),
		with(bareCall, `"principal":{"userId":"a"},"outcome":{"finishReason":"b|c"}`),
		with(bareCall, `"principal":{"userId":"ab"},"outcome":{"finishReason":"c"}`),
		with(bareCall, `"principal":{"userId":"a"},"outcome":{"finishReason":"bc"}`),
		with(bareCall, `"principal":{"userId":""}`),
		with(bareCall, `"principal":{"userId":"null"}`),
		with(bareCall, `"modelId":"m"`),
		with(bareCall, `"call":{"model":"m"}`),
		with(bareCall, `"decision":{}`),
		with(bareCall, `"familyLock":{}`),
		with(bareCall, `"tokenCost":{"n":1.10}`),
		with(bareCall, `"tokenCost":{"n":1.1}`),
		as(bareCall, "stageId", `"tool-loop"`),
	}
	seen := map[Fingerprint]string{}
	for _, value := range values {
		content := accept(t, &Decoder{}, message(value)).ContentHash()
		if other, taken := seen[content]; taken {
			t.Errorf("one content for\n%s\n%s", other, value)
		}
		seen[content] = value
	}
}

// A stored ext that no decoder made is content as a whole, and no reason to
// panic.
func TestContentOfOddExt(t *testing.T) {
	seen := map[Fingerprint]string{}
	for _, ext := range []string{"", "[]", "{", `{"$key":1,"$key":1}`, `{"$key":`, "\xff", "7", `"$key"`, `{"a":1}`} {
		r := Record{Kind: Str(KindCall)}
		r.Slots[SlotExt] = []byte(ext)
		if other, taken := seen[r.ContentHash()]; taken {
			t.Errorf("one content for %q and %q", other, ext)
		}
		seen[r.ContentHash()] = ext
	}
	var none, left Record
	left.Slots[SlotExt] = []byte(`{"$key":null,"$headers":[["a","b"]],"recordId":"x"}`)
	if none.ContentHash() != left.ContentHash() {
		t.Error("an ext that has no content is told from none")
	}
}
