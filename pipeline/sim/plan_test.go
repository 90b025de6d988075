package sim_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// Long times, in the bubble's time. The grace is that of archives that are not
// compacted; the session is how long the group waits for a silent member.
const (
	grace    = 60 * time.Second
	session  = 9 * time.Second
	shutdown = 4 * time.Second
	// stopSlack is what a process that is asked to stop may take beside that: to
	// leave its group, which waits for a rebalance that goes on.
	stopSlack = 30 * time.Second
)

// A plan is the world that a seed makes: what does not change while it runs.
type plan struct {
	brokers    int // between which leaders move
	partitions int32
	least      int    // processes that people keep alive: two where they may read the same
	most       int    // processes alive at once
	group      string // how the partitions are spread: one of groupings
	batch      pipeline.Batch
	window     int // coordinates remembered
	steps      int
	tenants    int
	flaky      float64 // share of requests to the bucket that fail by themselves
	compacted  bool    // the topic has cleanup.policy=compact
	deletes    bool    // records are deleted before they are read
	recreates  bool    // the topic is deleted and made again
	upgrades   bool    // later processes are of another version
	forges     bool    // somebody writes segments that say what is not so

	signed        bool // anchors are
	copies        bool // of anchors go to Kafka
	anchorEvery   time.Duration
	anchorRows    int64
	restores      bool // the bucket is restored from a backup
	forgesAnchors bool // somebody writes anchors that are none

	grace      time.Duration // of the archive
	versioning archive.Versioning
	compaction // none: nothing is compacted, and nobody orders an erasure
}

// groupings are the ways in which processes come by their partitions.
var groupings = []string{"kip-848", "assign", "range", "round-robin", "cooperative", "static", "two-groups"}

// patient are those of them that Go's own runtime can run: in the others the
// client waits for a mutex while it commits or joins, and a bubble's clock
// stands still as long.
var patient = groupings[:2]

func newPlan(d dice) plan {
	p := plan{
		brokers:    one(d, 1, 1, 2),
		partitions: int32(d.from(1, 3)),
		most:       d.from(1, 5),
		group:      one(d, append(groupings, "assign", "two-groups")...), // these two more often
		window:     one(d, 8, 24, 64, 200_000),
		steps:      d.from(12, 40),
		tenants:    d.from(1, 4),
		flaky:      one(d, 0, 0, 0.03, 0.15),
		compacted:  d.chance(0.15),
		deletes:    d.chance(0.2),
		recreates:  d.chance(0.15),
		upgrades:   d.chance(0.4),
		forges:     d.chance(0.4),

		signed:        d.chance(0.8),
		copies:        d.chance(0.8),
		anchorEvery:   one(d, time.Second, 5*time.Second, 20*time.Second, time.Minute),
		anchorRows:    one(d, int64(3), 40, 100_000),
		restores:      d.chance(0.25),
		forgesAnchors: d.chance(0.5), // but not where there is compaction
	}
	p.grace = grace
	if d.chance(0.6) {
		p.compact(d)
	}
	if !exact && !slices.Contains(patient, p.group) {
		p.group = one(d, patient...)
	}
	p.least = 1
	if p.group == "assign" || p.group == "two-groups" {
		p.least, p.most = 2, max(p.most, 3)
	}
	p.batch = one(d,
		pipeline.Batch{},
		pipeline.Batch{Rows: 4, Strict: true},
		pipeline.Batch{Rows: 2, Age: time.Second, Strict: true, EmptyAge: time.Second},
		pipeline.Batch{Rows: 8, Age: 10 * time.Millisecond, GrowRows: 12, EmptyAge: 3 * time.Second},
		pipeline.Batch{Age: time.Minute, Rows: 1000},
	)
	return p
}

func (p plan) String() string {
	return fmt.Sprintf("%d brokers, %d partitions, up to %d processes, %s, batch %+v, window %d, %d tenants, flaky %.2f, compacted %t, deletes %t, recreates %t, upgrades %t, forges %t, signed %t, copies %t, anchors every %v or %d rows, restores %t, forges anchors %t, grace %v, versioning %v, compaction %+v",
		p.brokers, p.partitions, p.most, p.group, p.batch, p.window, p.tenants, p.flaky, p.compacted, p.deletes, p.recreates, p.upgrades, p.forges,
		p.signed, p.copies, p.anchorEvery, p.anchorRows, p.restores, p.forgesAnchors, p.grace, p.versioning, p.compaction)
}

// version returns the version of the n-th process.
func (p plan) version(n int) string {
	if p.upgrades {
		return fmt.Sprintf("sim-%d", n/3)
	}
	return "sim-0"
}

// member returns how the n-th process takes part: its group, and the client's
// options for it.
func (p plan) member(n int) (group string, opts []kgo.Opt) {
	if p.group == "assign" {
		return "ledgerlake", nil
	}
	opts = []kgo.Opt{kgo.SessionTimeout(session), kgo.HeartbeatInterval(3 * time.Second), kgo.RebalanceTimeout(2 * shutdown)}
	group = "ledgerlake"
	switch p.group {
	case "range":
		opts = append(opts, kgo.Balancers(kgo.RangeBalancer()))
	case "round-robin":
		opts = append(opts, kgo.Balancers(kgo.RoundRobinBalancer()))
	case "cooperative":
		opts = append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()))
	case "kip-848":
		opts = append(opts, kgo.ServerSideBalancer())
	case "static":
		opts = append(opts, kgo.Balancers(kgo.CooperativeStickyBalancer()), kgo.InstanceID(fmt.Sprintf("i%d", n%p.most)))
	case "two-groups":
		group = fmt.Sprintf("ledgerlake-%d", n%2)
	}
	return group, opts
}
