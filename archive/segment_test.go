package archive_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

func sampleSegment() *archive.Segment {
	sum := chain.Hash{1}
	return &archive.Segment{
		Format: archive.Format, ArchiveID: archiveID, Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3,
		Ordinal: 1, PreviousSHA256: &sum, FirstOffset: 10, NextOffset: 18, LeaderEpoch: -1, Rows: 3, Made: 1,
		Duplicates: []archive.Duplicate{{Offset: 12, Tenant: "a\"b", Seq: 3}},
		Gaps:       []archive.Gap{{From: 13, To: 14, Cause: archive.GapControl}, {From: 14, To: 18, Cause: archive.GapLost}},
		Writer:     archive.Writer{Version: "1", Policy: "none", Settings: chain.Hash{}.String()},
		Logs: []archive.LogInterval{
			{Tenant: "acme", Scheme: chain.SchemeV1, FirstSeq: 4, Rows: 2, HeadIn: chain.Hash{2}, HeadOut: chain.Hash{3}, Size: 6, Frontier: []chain.Hash{{4}, {5}}},
			{Tenant: "_partition", Scheme: chain.SchemeV1, Rows: 1, HeadIn: chain.Hash{6}, HeadOut: chain.Hash{7}, Size: 1, Frontier: []chain.Hash{{8}}},
		},
	}
}

// A segment's metadata comes back as it was written, tuples and all.
func TestSegmentMetadataPair(t *testing.T) {
	want := sampleSegment()
	body, err := archive.EncodeSegment(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"duplicates":[[12,"a\"b",3]]`, `"gaps":[[13,14,"control"],[14,18,"lost"]]`, `"previousSha256":"0100`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	got, err := archive.DecodeSegment(body)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// A segment without anything says so with empty lists, never with null.
func TestEmptySegmentHasLists(t *testing.T) {
	body, err := archive.EncodeSegment(&archive.Segment{Format: archive.Format})
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"duplicates":[]`, `"gaps":[]`, `"logs":[]`, `"previousSha256":null`} {
		if !strings.Contains(string(body), part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
}

// Metadata whose form is wrong, or whose counts do not agree, is refused.
func TestDecodeSegmentRefuses(t *testing.T) {
	good, err := archive.EncodeSegment(sampleSegment())
	if err != nil {
		t.Fatal(err)
	}
	for name, swap := range map[string][2]string{
		"another format":       {`"ledgerlake-v1"`, `"ledgerlake-v2"`},
		"a member twice":       {`"ordinal":1`, `"ordinal":1,"ordinal":1`},
		"a member twice, deep": {`"seq":`, `"seq":`},
		"an offset too many":   {`"nextOffset":18`, `"nextOffset":19`},
		"a row too many":       {`"rows":3`, `"rows":4`},
		"a long tuple":         {`[13,14,"control"]`, `[13,14,"control",1]`},
		"a short tuple":        {`[13,14,"control"]`, `[13,14]`},
		"null in a tuple":      {`[13,14,"control"]`, `[13,14,null]`},
		"a hash in capitals":   {`"previousSha256":"01`, `"previousSha256":"0A`},
		"a fraction":           {`"made":1`, `"made":1.5`},
		"an unknown cause":     {`"control"]`, `"foo"]`},
		"an empty gap":         {`[13,14,"control"],[14,18`, `[13,13,"control"],[13,18`},
		"no settings":          {`"settings":"0000`, `"settings":"zz00`},
		"settings in capitals": {`"settings":"0000`, `"settings":"AA00`},
		"a negative offset":    {`"firstOffset":10`, `"firstOffset":-10`},
		"a negative seq":       {`[12,"a\"b",3]`, `[12,"a\"b",-3]`},
		"a log without rows":   {`"logs":[`, `"logs":[{"tenant":"ghost","scheme":"ledgerlake-v1","epoch":0,"firstSeq":0,"rows":0,"headIn":"` + chain.Hash{}.String() + `","headOut":"` + chain.Hash{}.String() + `","size":0,"frontier":[]},`},
		"null for a list":      {`"duplicates":[[12,"a\"b",3]],"gaps":[[13,14,"control"],[14,18,"lost"]]`, `"duplicates":[[12,"a\"b",3],[13,"x",1],[14,"x",1],[15,"x",1],[16,"x",1],[17,"x",1]],"gaps":null`},
	} {
		bad := strings.Replace(string(good), swap[0], swap[1], 1)
		if name == "a member twice, deep" {
			bad = strings.Replace(string(good), `"tenant":"acme"`, `"tenant":"acme","tenant":"acme"`, 1)
		}
		if bad == string(good) {
			t.Fatalf("%s: nothing was changed", name)
		}
		if _, err := archive.DecodeSegment([]byte(bad)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	for _, bad := range []string{"", "null", "[]", string(good) + "x", string(good) + string(good)} {
		if _, err := archive.DecodeSegment([]byte(bad)); err == nil {
			t.Errorf("accepted %.40q", bad)
		}
	}
}

// No bytes make the decoder panic, and what it accepts encodes again.
func FuzzDecodeSegment(f *testing.F) {
	good, err := archive.EncodeSegment(sampleSegment())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := archive.DecodeSegment(body)
		if err != nil {
			return
		}
		again, err := archive.EncodeSegment(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := archive.DecodeSegment(again); err != nil {
			t.Errorf("encoded again: %v", err)
		}
	})
}
