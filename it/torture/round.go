//go:build it

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// partitions is how many a round's topic has: more than processes, and not a
// multiple of them.
const partitions = 4

// patience is how long a recovery may take. It holds a session timeout, the
// longest wait between two attempts at a store (15 s), and a rebalance.
const patience = 90 * time.Second

// A round is a topic and its archive, and what is done to those who work on them.
type round struct {
	*rig
	name    string // of topic, group and the archive's prefix
	rng     *rand.Rand
	group   oracle.Group
	fleet   *fleet
	compact *fleet
	load    *load
	witness *witness
	ledger  *ledger
	doing   string // for people
	stopped bool   // all processes have stopped cleanly
	vkey    string // of the key that signs anchors
	follow  func() // ends the ledger's reading beside the acts
	// brokerShares: the group is of protocol consumer (KIP-848), in which the
	// broker shares the partitions, and not of protocol classic, in which the
	// members do.
	brokerShares bool
}

// run makes the topic and the archive, does the acts, and leaves nothing. It
// does no further act once it is over.
func (r *round) run(ctx context.Context, acts []act, over func() bool, results *results) error {
	defer r.end()
	if err := r.begin(ctx); err != nil {
		return err
	}
	for i, a := range acts {
		if over() {
			break
		}
		r.doing = fmt.Sprintf("%s %d/%d %s", r.name, i+1, len(acts), a.name)
		if err := r.perform(ctx, a, results); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	r.doing, r.stopped = r.name+" "+last.name, true
	if err := r.perform(ctx, last, results); err != nil {
		return fmt.Errorf("%s: %w", last.name, err)
	}
	return r.forget(ctx)
}

// last is the end of a round: no fault, but a time to look.
var last = act{"end of a round", (*round).finish}

// begin starts all that a round has, and waits until something is archived.
func (r *round) begin(ctx context.Context) error {
	if _, err := kadm.NewClient(r.client).CreateTopic(ctx, partitions, 1, nil, r.name); err != nil {
		return err
	}
	// A client that asks before the broker knows it asks again seconds later.
	if _, err := r.ends(ctx); err != nil {
		return err
	}
	dir := filepath.Join(r.dir, r.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	r.group = oracle.Group{Client: r.client, Name: r.name}
	r.brokerShares = r.rng.IntN(2) == 0
	r.say("%s: group protocol %s", r.name, map[bool]string{false: "classic", true: "consumer"}[r.brokerShares])
	r.ledger = newLedger(parts.S3Client(r.store.URL()), r.name+"/", filepath.Join(dir, "segments"), partitions)
	var err error
	if r.witness, err = newWitness(ctx, r.kafka.Addr, r.name, partitions); err != nil {
		return err
	}
	r.load = &load{brokers: r.kafka.Addr, topic: r.name, rate: r.rate, ledger: r.ledger}
	r.load.begin(ctx, r.rng)
	if err := r.prepare(ctx, dir); err != nil {
		return err
	}
	r.follow = r.ledger.follow(ctx)
	if err := r.compactAll(); err != nil {
		return err
	}
	if err := r.joinAll(); err != nil {
		return err
	}
	for r.load.acked.Load() < int64(r.rate) {
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return r.recovered(ctx)
}

// prepare makes the archive, whose grace is short, the keys, and what all
// processes are started with.
func (r *round) prepare(ctx context.Context, dir string) error {
	anchors, catalogs := filepath.Join(dir, "anchors.key"), filepath.Join(dir, "catalogs.key")
	var err error
	if r.vkey, err = parts.MakeKey(anchors, "torture.example/anchors"); err != nil {
		return err
	}
	vkey, err := parts.MakeKey(catalogs, "torture.example/catalogs")
	if err != nil {
		return err
	}
	both := []string{"--brokers", r.kafka.Addr, "--bucket", r.url(r.front.URL), "--control-topic", "none", "--http.listen", "none", "--progress", "0s"}
	r.fleet = &fleet{program: "ingest", fatal: "partition stopped", dir: dir, seen: map[string]int{}, args: append([]string{
		"--anchor-key", anchors, "--anchor-every", "2s", "--catalog-keys", vkey, "--batch.empty-age", "1s",
	}, both...)}
	r.compact = &fleet{program: "compact", fatal: "line is halted", dir: dir, seen: map[string]int{}, args: append([]string{
		"--compact.assign", "all", "--key", r.vkey, "--catalog-key", catalogs,
		"--compact.every", "500ms", "--compact.max-age", "3s", "--compact.sweep-every", "3s", "--compact.merge-files", "4",
	}, both...)}
	return parts.MakeArchive(ctx, r.store.URL(), bucket, r.name+"/", "01KBARCH0000000000000000AR", grace)
}

// join starts one more member of the group.
func (r *round) join() error {
	protocol := []string{"--kafka.session-timeout", sessionTimeout.String()}
	if r.brokerShares {
		protocol = []string{"--kafka.group-protocol", "consumer"} // the broker has the timeout
	}
	return r.fleet.join(append([]string{"--topics", r.name, "--group", r.name}, protocol...)...)
}

// joinAll starts as many members as there should be.
func (r *round) joinAll() error {
	for range fleetSize {
		if err := r.join(); err != nil {
			return err
		}
	}
	return nil
}

// url returns the URL of the round's archive on a server.
func (r *round) url(endpoint string) string {
	host, query, _ := strings.Cut(parts.BucketURL(endpoint, bucket), "?")
	return host + "/" + r.name + "?" + query
}

// end stops what is left of a round.
func (r *round) end() {
	for _, f := range []*fleet{r.fleet, r.compact} {
		if f != nil {
			f.kill()
		}
	}
	if r.follow != nil {
		r.follow()
	}
	if r.load != nil {
		if err := r.load.end(); err != nil {
			r.say("%v", err)
		}
	}
	if r.witness != nil {
		r.witness.close()
	}
	r.front.Clear()
}

// perform does something to the round, waits until it has recovered, looks at
// the archive, and notes what it came to.
func (r *round) perform(ctx context.Context, a act, results *results) error {
	stop := r.progress(ctx)
	defer stop()
	began := time.Now()
	var one result
	defer func() { results.add(a.name, one) }()
	if err := a.do(r, ctx); err != nil {
		return err
	}
	over := time.Now()
	err := r.recovered(ctx)
	one.recover = time.Since(over)
	if err != nil {
		return err
	}
	if err := r.look(ctx, &one); err != nil {
		return err
	}
	r.say("%s: took %s, recovered after %s; %s records: %d repeated, %d lost, verify %d", r.doing, seconds(over.Sub(began)),
		seconds(one.recover), thousands(one.records()), one.repeats, one.lost, one.verify)
	if !one.right() || one.verify != oracle.Proved {
		return fmt.Errorf("%w: %s", errWrong, strings.Join(r.ledger.faults, "; "))
	}
	return nil
}

// progress says every ten seconds how far it is, until the returned func is called.
func (r *round) progress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(10 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			r.say("%s: %s", r.doing, r.where(ctx))
		}
	}()
	return func() { cancel(); <-done }
}

// where says how much is sent, and how much of it is not committed yet.
func (r *round) where(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lag := "the broker does not answer"
	if n, err := r.group.Lag(ctx, r.name); err == nil {
		lag = "lag " + thousands(n)
	}
	return fmt.Sprintf("%s records acknowledged, %s", thousands(r.load.acked.Load()), lag)
}

// recovered waits until everything that is in Kafka now is committed.
func (r *round) recovered(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ends, err := r.ends(ctx)
	if err != nil {
		return err
	}
	for {
		err := r.committed(ctx, ends)
		if err == nil {
			return nil
		}
		if err := errors.Join(r.fleet.alive(), r.compact.alive()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not recovered within %v: %w", patience, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// ends returns the offset up to which a reader of committed records can read
// each partition now. It waits for a broker that is still starting.
func (r *round) ends(ctx context.Context) ([]int64, error) {
	for {
		listed, err := kadm.NewClient(r.client).ListCommittedOffsets(ctx, r.name)
		if err = errors.Join(err, listed.Error()); err == nil {
			ends := make([]int64, partitions)
			listed.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
			return ends, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// committed returns an error unless the group has committed each partition up
// to ends.
func (r *round) committed(ctx context.Context, ends []int64) error {
	at, err := r.group.Committed(ctx, r.name)
	if err != nil {
		return err
	}
	for p, end := range ends {
		if got := at[fmt.Sprintf("%s/%d", r.name, p)]; got < end {
			return fmt.Errorf("partition %d is committed up to %d of %d", p, got, end)
		}
	}
	return nil
}

// look asks verify, and holds the archive against Kafka.
func (r *round) look(ctx context.Context, one *result) error {
	verdict := make(chan error, 1)
	var v oracle.Verdict
	go func() {
		var err error
		v, err = r.verify(ctx)
		verdict <- err
	}()
	err := r.hold(ctx, &one.counts)
	if err := errors.Join(<-verdict, err); err != nil {
		return err
	}
	if one.verify = v.Code; v.Code != oracle.Proved {
		r.ledger.fault("verify: exit %d: %s%s", v.Code, v.Stdout, v.Stderr)
	}
	return nil
}

// verify asks ledgerlake-verify. What a compactor that was killed leaves behind
// is something to look at until another one has swept it: it is given time.
func (r *round) verify(ctx context.Context) (oracle.Verdict, error) {
	args := []string{"--key", r.vkey}
	if !r.stopped {
		args = append(args, "--allow-unsigned") // a partition may not have its first anchor yet
	}
	for end := time.Now().Add(patience); ; {
		v, err := oracle.Verify(r.url(r.store.URL()), parts.Credentials(), args...)
		if err != nil || v.Code != oracle.LookAt || !strings.Contains(v.Stdout, "stray") || r.stopped || time.Now().After(end) {
			return v, err
		}
		if err := pause(ctx, 3*time.Second); err != nil {
			return v, err
		}
	}
}

// hold holds what is new in the archive against Kafka.
func (r *round) hold(ctx context.Context, c *counts) error {
	at, err := r.group.Committed(ctx, r.name) // before the archive is read
	if err != nil {
		return err
	}
	next, fresh, err := r.ledger.read(ctx)
	c.add(fresh)
	if err != nil {
		return err
	}
	for p, n := range next {
		if got := at[fmt.Sprintf("%s/%d", r.name, p)]; got > n {
			c.lost += got - n
			r.ledger.fault("partition %d is committed up to %d, and archived up to %d", p, got, n)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	delivered, err := r.witness.until(ctx, next)
	if err != nil {
		return err
	}
	c.add(r.ledger.hold(delivered))
	seen, err := r.view(ctx)
	c.add(seen)
	return err
}

// finish ends the producers, lets ingest drain, and stops it; then lets
// compaction come to an end, and stops that.
func (r *round) finish(ctx context.Context) error {
	if err := r.load.end(); err != nil {
		return err
	}
	if err := r.recovered(ctx); err != nil {
		return err
	}
	r.say("%s: %s records acknowledged, %s more in transactions that were aborted, %s given up by a producer", r.name,
		thousands(r.load.acked.Load()), thousands(r.load.aborted.Load()), thousands(r.load.failed.Load()))
	if err := r.fleet.stop(); err != nil {
		return err
	}
	if err := r.compacted(ctx); err != nil {
		return err
	}
	return r.compact.stop()
}

// forget deletes the archive of a round that went well.
func (r *round) forget(ctx context.Context) error {
	client := parts.S3Client(r.store.URL())
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(r.name + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, o := range page.Contents {
			if _, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: aws.String(bucket), Key: o.Key}); err != nil {
				return err
			}
		}
	}
	return os.RemoveAll(filepath.Join(r.dir, r.name, "segments"))
}
