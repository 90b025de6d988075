package sim_test

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/archive"
)

// weather is what the bucket is like for some time, for one process or for all.
type weather struct {
	kind  string
	until time.Time
	of    string // a process's name; "" = all
}

// weathers are the kinds of it.
var weathers = []string{"503", "denied", "conflict", "slow", "damaged-reads", "lists-broken", "replies-lost", "writes-delayed"}

// kinds are all that may happen to a run, as the counts name them: over some
// hundred seeds each must have happened, or the simulation shows less than it
// says.
var kinds = []string{
	"create:500", "create:503", "create:denied", "create:conflict", "create:delayed-write", "create:lost-reply", "create:exists-after-own-write",
	"write-after-giving-up", "late-write-landed",
	"get:500", "get:503", "get:denied", "get:truncated", "get:flipped", "get-tail:500", "get-tail:truncated", "get-tail:flipped",
	"list:500", "list:503", "list:list-broken", "slow",
	"conn-dropped", "kafka-away", "reply-lost", "commit-reply-lost", "conns-dropped",
	"crash:create", "crash:created", "crash:get", "crash:get-tail", "crash:list", "crash:dial", "crash:send", "crash:now",
	"freeze:create", "freeze:created", "freeze:get", "freeze:send", "freeze:now", "freeze-beyond-grace",
	"by:kip-848", "by:assign", "by:range", "by:round-robin", "by:cooperative", "by:static", "by:two-groups",
	"start", "clean-stop", "takeover", "adopted", "met-itself", "met-another", "retry", "partition-stopped", "segment", "offset-commit",
	"commit", "abort", "repeat-near", "repeat-far", "conflict", "poison", "null", "leader-moved", "kafka-compacts", "kafka-deletes", "topic-recreated",
	"group-offset-back", "group-offset-ahead", "group-offset-deleted",
	"compared", "ghost", "lost-gap", "duplicate", "compacted-gap", "control-gap",
	"forged:altered-row", "forged:invented-gap", "forged:invented-duplicate", "forged:beyond-the-log", "forged:invented-row",
	"forged:other-version-other-tenant", "forged:other-version-other-turn",
	"anchor", "anchor-adopted", "bucket-restored", "forged-anchor:by-a-stranger", "forged-anchor:unsigned-and-false", "forged-anchor:garbage",
	"catalog", "data-file", "file-named", "watermark-moves", "compactors-race", "clock-skewed", "line-read", "write-below-watermark",
	"rows-erased", "rows-dropped", "repeats-marked", "files-merged", "files-rewritten", "strays-doomed", "objects-deleted", "uploads-aborted",
	"delete-kept", "delete:lost-reply", "versions:500", "versions:list-broken", "copied-onto-itself", "unfinished-upload", "version-deleted",
	"erase:record", "erase:coordinates", "erase:turn", "erase:session", "erase:user", "erase:offset", "erase:before", "erase:unknown",
	"say:redaction", "say:redaction-cancelled", "say:legal-hold", "say:retention-cut", "redaction-gone", "redaction-receipted", "receipt-sent", "receipt",
}

// errorsOf are the errors of requests that do nothing, at least not yet.
var errorsOf = map[string]error{
	"500": errServer, "503": errBusy, "denied": archive.ErrDenied, "conflict": archive.ErrConflict, "delayed-write": errTimeout, "delayed-delete": errTimeout,
}

// bucketFault says what goes wrong with a request to the bucket.
func (w *world) bucketFault(p *process, op string, draw uint64) bucketFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := w.bucketFaultKind(p, op, draw)
	if kind == "" {
		return bucketFault{}
	}
	w.counts[op+":"+kind]++
	return bucketFault{kind: kind, err: errorsOf[kind], draw: scramble(draw + 7)}
}

func (w *world) bucketFaultKind(p *process, op string, draw uint64) string {
	if w.calm {
		return ""
	}
	pick := scramble(draw + 3)
	if kind := w.weatherOf(p); kind != "" && chance(draw, 0.8) {
		switch {
		case kind == "503", kind == "denied":
			return kind
		case kind == "conflict" && op == "create":
			return kind
		case kind == "replies-lost" && (op == "create" || op == "delete"):
			return "lost-reply"
		case kind == "writes-delayed" && op == "create":
			return "delayed-write"
		case kind == "damaged-reads" && (op == "get" || op == "get-tail" || op == "get-range"):
			return []string{"truncated", "flipped"}[pick%2]
		case kind == "lists-broken" && (op == "list" || op == "versions"):
			return "list-broken"
		}
	}
	if !chance(scramble(draw+5), w.plan.flaky) {
		return ""
	}
	switch op {
	case "create":
		return []string{"500", "lost-reply", "lost-reply", "delayed-write", "conflict", "exists-after-own-write", "denied"}[pick%7]
	case "list", "versions":
		return []string{"500", "list-broken"}[pick%2]
	case "delete":
		return []string{"500", "lost-reply", "delayed-delete", "some-keys", "some-keys", "denied"}[pick%6]
	case "now", "abort", "uploads":
		return "500"
	}
	return []string{"500", "truncated", "flipped"}[pick%3]
}

func (w *world) weatherOf(p *process) string {
	if time.Now().After(w.weather.until) || w.weather.of != "" && w.weather.of != p.name {
		return ""
	}
	return w.weather.kind
}

// kafkaIsAway reports whether a process cannot reach Kafka now.
func (w *world) kafkaIsAway(p *process) bool {
	return !w.calm && time.Now().Before(w.away.until) && (w.away.of == "" || w.away.of == p.name)
}

// slowest returns how long an operation takes at most now.
func (w *world) slowest(op string) time.Duration {
	d := 20 * time.Millisecond
	switch op {
	case "send", "dial":
		return 2 * time.Millisecond
	case "create":
		d = 80 * time.Millisecond
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.calm && w.weather.kind == "slow" && time.Now().Before(w.weather.until) {
		w.counts["slow"]++
		return 100 * d
	}
	return d
}

// requestFault says what goes wrong with a request to Kafka.
func (w *world) requestFault(p *process, key int16, draw uint64) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	kind := ""
	switch {
	case w.calm:
	case w.kafkaIsAway(p):
		kind = "kafka-away"
	case key == int16(kmsg.OffsetCommit) && chance(draw, 2*w.plan.flaky):
		kind = "commit-reply-lost"
	case chance(draw, w.plan.flaky/20):
		kind = []string{"conn-dropped", "reply-lost"}[scramble(draw)%2]
	}
	if kind != "" {
		w.counts[kind]++
		w.trace.say(p.name, "%s: %s", kmsg.NameForKey(key), kind)
	}
	return kind
}
