package config

import (
	"strings"
	"time"
)

// A Refill is what ledgerlake-export backfill is told.
type Refill struct {
	Tenants  []string
	FromSeq  int64 // -1: not given
	From, To time.Time
}

// Section returns its settings.
func (r *Refill) Section() Section {
	r.FromSeq = -1
	return Section{"What is sent", []Setting{
		{Name: "tenant", Help: "Only rows of these tenants.", Value: texts(&r.Tenants, "TENANT", "a tenant id", notEmpty)},
		{Name: "from-seq", Help: "From this seq of each log on.", Value: parsed(&r.FromSeq, "SEQ", "a whole number", parseDecimal)},
		{Name: "from", Help: "Rows that were created then or later (created_at; archived_at of those that have none).", Value: moment(&r.From)},
		{Name: "to", Help: "Rows that were created before.", Value: moment(&r.To)},
	}}
}

// moment is a time: RFC 3339, or a day in UTC.
func moment(p *time.Time) Value {
	return parsed(p, "TIME", "a time such as 2026-11-30T12:00:00Z, or a day such as 2026-11-30", func(s string) (time.Time, bool) {
		layout := time.RFC3339Nano
		if !strings.Contains(s, "T") {
			layout = time.DateOnly
		}
		t, err := time.Parse(layout, s)
		return t.UTC(), err == nil
	})
}

// ReplayOf returns the settings of ledgerlake-export dead.
func ReplayOf(replay, json *bool) Section {
	return Section{"What is done", []Setting{
		{Name: "replay", Default: "false", Help: "Send them again: a running exporter does it, in a lane of its own.", Value: boolean(replay)},
		jsonSetting(json),
	}}
}

// ReasonOf returns the settings of ledgerlake-export pause and resume.
func ReasonOf(reason *string) Section {
	return Section{"What is done", []Setting{
		{Name: "reason", Help: "Why, in a few words.", Value: text(reason, "TEXT", "a text", notEmpty)},
	}}
}
