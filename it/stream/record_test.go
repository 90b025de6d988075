//go:build it

package main

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"
)

// one returns the event of a row, and its hash.
func one(tenant string, seq int64) ([]byte, hash) {
	sum := hash{1, byte(seq), byte(len(tenant))}
	return fmt.Appendf(nil, `{"event":"record","tenant":%q,"topicId":"T","partition":1,"seq":%d,"rowHash":%q,"record":{"seq":99}}`, tenant, seq, hex.EncodeToString(sum[:])), sum
}

// What arrives wrongly is found, and what is documented is not: rows of log "a" by
// seq, 5 of which there are.
func TestTheRecordFindsWhatIsWrong(t *testing.T) {
	for _, c := range []struct {
		name    string
		seqs    []int64
		sorted  bool
		fault   string // "" is none
		repeats int64
		rewinds int
	}{
		{"all, in order", []int64{0, 1, 2, 3, 4}, false, "", 0, 0},
		{"some again", []int64{0, 1, 2, 1, 2, 3, 4}, false, "", 2, 1},
		{"twice again", []int64{0, 1, 2, 0, 1, 0, 1, 2, 3, 4}, false, "", 5, 2},
		{"the last once more", []int64{0, 1, 2, 3, 4, 4}, false, "", 1, 1},
		{"a hole", []int64{0, 1, 3, 4}, false, "1 are missing", 0, 0},
		{"no end", []int64{0, 1, 2, 3}, false, "1 are missing", 0, 0},
		{"no beginning", []int64{1, 2, 3, 4}, false, "1 are missing", 0, 0},
		{"nothing", nil, false, "nothing came of 5 rows", 0, 0},
		{"two that are swapped", []int64{0, 2, 1, 3, 4}, false, "seq 2 came when it was the turn of 1", 0, 0},
		{"no order, where there is none", []int64{4, 2, 1, 3, 0}, true, "", 0, 0},
		{"too many", []int64{0, 1, 2, 3, 4, 5}, false, "1 are too many", 0, 0},
	} {
		want := truth{}
		for seq := range int64(5) {
			_, sum := one("a", seq)
			want[logName{"a", "T", 1}] = append(want[logName{"a", "T", 1}], sum)
		}
		r := newRecord()
		r.sorted = c.sorted
		for _, seq := range c.seqs {
			text, _ := one("a", seq)
			r.see(text, time.Now())
		}
		r.hold(want)
		if got := strings.Join(r.faults, "; "); (c.fault == "") != (got == "") || !strings.Contains(got, c.fault) {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
		if r.repeats != c.repeats || len(r.rewinds) != c.rewinds {
			t.Errorf("%s: %d repeats in %d turns, want %d in %d", c.name, r.repeats, len(r.rewinds), c.repeats, c.rewinds)
		}
	}
}

// A row that comes again with another hash, a row of another log, and what is no
// event are found.
func TestTheRecordFindsWhatIsNoRow(t *testing.T) {
	first, sum := one("a", 0)
	other, _ := one("b", 0)
	for text, fault := range map[string]string{
		strings.Replace(string(first), "01", "02", 1): "came with row_hash",
		string(other): "there is no such log",
		"not JSON":    "what is no event of ours",
		`{"event":"record","tenant":"a","topicId":"T","partition":1,"rowHash":"00"}`: "has row_hash",
		`{"event":"else"}`: "an event",
	} {
		r := newRecord()
		r.see(first, time.Now())
		r.see([]byte(text), time.Now())
		r.hold(truth{logName{"a", "T", 1}: {sum}})
		if got := strings.Join(r.faults, "; "); !strings.Contains(got, fault) {
			t.Errorf("%s: %q, want %q", text, got, fault)
		}
	}
}

// A repeat has a cause where a kill, a failed delivery or a foul mood lies between
// the two arrivals.
func TestARepeatNeedsACause(t *testing.T) {
	now := time.Now()
	at := func(s float64) time.Time { return now.Add(time.Duration(s * float64(time.Second))) }
	w := rewind{first: at(10), at: at(12)}
	for _, c := range []struct {
		name    string
		kills   []time.Time
		retries []time.Time
		spells  []spell
		ok      bool
	}{
		{"nothing", nil, nil, nil, false},
		{"a kill before", []time.Time{at(9)}, nil, nil, false},
		{"a kill after", []time.Time{at(13)}, nil, nil, false},
		{"a kill", []time.Time{at(11)}, nil, nil, true},
		{"a retry", nil, []time.Time{at(11)}, nil, true},
		{"a spell", nil, nil, []spell{{at(11), at(20)}}, true},
		{"a spell that a request outlives", nil, nil, []spell{{at(8), at(9)}}, true},
		{"a spell long before", nil, nil, []spell{{at(1), at(2)}}, false},
		{"a spell after", nil, nil, []spell{{at(13), at(14)}}, false},
	} {
		weather := newWeather(nil)
		weather.spells = c.spells
		tr := &trial{kills: c.kills}
		if ok := tr.caused(&receiver{weather: weather, retries: c.retries}, w); ok != c.ok {
			t.Errorf("%s: %v, want %v", c.name, ok, c.ok)
		}
	}
}

// What a door takes half of it can split, and its answers are those of receivers.
func TestDoorsKnowWhatARequestHas(t *testing.T) {
	bulk := "{\"create\":{}}\n{\"a\":1}\n{\"create\":{}}\n{\"a\":2}\n"
	if got := splitBulk([]byte(bulk)); len(got) != 2 || string(protocols[0].text(got[1])) != "{\"a\":2}\n" {
		t.Errorf("%q", got)
	}
	if got := splitHEC([]byte(`{"event":{"a":"}{"}}{"event":{"a":2}}`)); len(got) != 2 || string(protocols[1].text(got[0])) != `{"a":"}{"}` {
		t.Errorf("%q", got)
	}
	if _, body := halfBulk(1, 3); strings.Count(body, "201") != 1 || strings.Count(body, "429") != 2 {
		t.Error(body)
	}
}
