//go:build it

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/internal/workload"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// everything sends the records, archives and compacts them, and exports them by
// exporters that are killed, to receivers in foul weather.
func (t *trial) everything(ctx context.Context) error {
	if err := t.startWorkers(); err != nil {
		return err
	}
	for _, r := range t.receivers {
		r.weather.begin()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	killing, calm := context.WithCancel(ctx)
	var killer sync.WaitGroup
	var killErr error
	killer.Go(func() {
		if killErr = t.kill(killing); killErr != nil {
			cancel()
		}
	})
	err := t.send(ctx)
	if err == nil {
		err = t.behind(ctx)
	}
	calm()
	killer.Wait()
	for _, r := range t.receivers {
		r.weather.end()
	}
	return errors.Join(killErr, err)
}

// send sends all records, evenly over the time that it may take, and waits until
// they are archived.
func (t *trial) send(ctx context.Context) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(t.kafka.Addr), kgo.DefaultProduceTopic(topic), kgo.ProducerLinger(20*time.Millisecond), kgo.UnknownTopicRetries(-1))
	if err != nil {
		return err
	}
	defer client.Close()
	g := workload.New(t.seed, t.tenants)
	g.Broken, g.Repeats, g.Conflicts = 0.005, 0.01, 0.001
	g.Start, g.Step = t.begin.Add(-time.Hour), time.Millisecond
	var once sync.Once
	var failed error
	begin := time.Now()
	for i := range t.rows {
		if ahead := t.lasts*time.Duration(i)/time.Duration(t.rows) - time.Since(begin); ahead > 20*time.Millisecond {
			if err := pause(ctx, ahead); err != nil {
				return err
			}
		}
		r := g.Next()
		client.Produce(ctx, parts.KafkaRecord(&r), func(_ *kgo.Record, err error) {
			if err != nil {
				once.Do(func() { failed = err })
			}
		})
	}
	if err := errors.Join(client.Flush(ctx), failed); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return t.group.WaitDrained(ctx, t.alive, topic)
}

// behind waits until receivers have nine rows of ten, all but the last of what is
// archived, or until that has taken twice as long as sending.
func (t *trial) behind(ctx context.Context) error {
	for end := time.Now().Add(2 * t.lasts); time.Now().Before(end); {
		all, err := t.standings()
		if err != nil {
			return err
		}
		most := int64(0)
		for _, s := range all {
			most = max(most, s.Rows)
		}
		t.say("under kills and faults, to go:%s", toGo(all))
		if len(all) == len(t.receivers) && most <= int64(t.rows)/10 {
			return nil
		}
		if err := pause(ctx, 5*time.Second); err != nil {
			return err
		}
	}
	return nil
}

// kill starts an exporter, kills it at a random moment, and starts another one in
// its place, until ctx is done. The last one is left running.
func (t *trial) kill(ctx context.Context) error {
	rng := t.rng(1)
	for {
		if err := t.startExporter(); err != nil {
			return err
		}
		for end := time.Now().Add(time.Minute); !strings.Contains(t.exporter.Output(), "export starts") && time.Now().Before(end) && t.exporter.Running(); {
			if pause(ctx, 50*time.Millisecond) != nil {
				return nil
			}
		}
		if pause(ctx, t.life/2+time.Duration(rng.Int64N(int64(t.life/2)))) != nil {
			return nil
		}
		if err := t.exporting(); err != nil {
			return err
		}
		t.kills = append(t.kills, time.Now())
		t.exporter.Kill()
	}
}

func (t *trial) startExporter() (err error) {
	t.exporter, err = t.start("ledgerlake-export", "stream", "--config", t.in("export.yaml"), "--bucket", t.url(),
		"--key", t.vkeys["anchors"]+","+t.vkeys["catalogs"], "--control-topic", "none", "--http.listen", "none", "--log-tenants", "--log-level", "debug", "--progress", "5s")
	return err
}

// exporting returns an error if the exporter has ended by itself.
func (t *trial) exporting() error {
	if t.exporter.Running() {
		return nil
	}
	code, _ := t.exporter.Wait(0)
	return fmt.Errorf("%s has ended by itself, exit %d: %s", t.exporter.Log, code, lastLine(t.exporter.Output()))
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A standing is what status says of a destination.
type standing struct {
	Name, State, Reason string
	Rows, Dead          int64
}

// stuck is how long nothing may move in calm weather.
const stuck = 90 * time.Second

// rest waits until every destination has passed every row, then stops everything
// cleanly.
func (t *trial) rest(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	fewest, since := int64(-1), time.Now()
	for last := (time.Time{}); ; {
		if err := errors.Join(t.alive(), t.exporting()); err != nil {
			return err
		}
		all, err := t.standings()
		if err != nil {
			return err
		}
		done, rows := len(all) == len(t.receivers), int64(0)
		for _, s := range all {
			if s.State != "active" || s.Dead > 0 {
				return fmt.Errorf("%w: %s is %s, with %d dead letters: %s", errWrong, s.Name, s.State, s.Dead, s.Reason)
			}
			done, rows = done && s.Rows == 0, rows+s.Rows
		}
		if rows < fewest || fewest < 0 {
			fewest, since = rows, time.Now()
		}
		if done {
			break
		}
		if time.Since(last) > 10*time.Second {
			last = time.Now()
			t.say("to go:%s", toGo(all))
		}
		if time.Since(since) > stuck {
			return fmt.Errorf("%w: nothing was delivered for %v, to go:%s", errWrong, stuck, toGo(all))
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("not everything was delivered after %v:%s: %w", patience, toGo(all), err)
		}
	}
	for _, p := range append(t.workers, t.exporter) {
		if code, err := p.Stop(time.Minute); err != nil || code != 0 {
			return fmt.Errorf("%s: exit %d after SIGTERM: %w", p.Log, code, err)
		}
	}
	t.workers, t.exporter = nil, nil
	return nil
}

func toGo(all []standing) (text string) {
	for _, s := range all {
		text += fmt.Sprintf(" %s %d", s.Name, s.Rows)
	}
	return text
}

// standings asks the product how its destinations stand.
func (t *trial) standings() (all []standing, err error) {
	cmd := exec.Command(parts.Binary("ledgerlake-export"), "status", "--json", "--bucket", t.url(), "--key", t.vkeys["anchors"]+","+t.vkeys["catalogs"])
	cmd.Env = parts.Environ(parts.Credentials())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("status: %w: %s", err, exit.Stderr)
	}
	if err != nil {
		return nil, err
	}
	var says struct{ Destinations []standing }
	if err := json.Unmarshal(out, &says); err != nil {
		if err := json.Unmarshal(out, &says.Destinations); err != nil {
			return nil, fmt.Errorf("status --json: %w: %.200s", err, out)
		}
	}
	return says.Destinations, nil
}
