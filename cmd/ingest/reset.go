package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// resetChain is the command that begins the logs of a partition anew behind a
// tail that is bad.
func resetChain(ctx context.Context, in invocation) error {
	var s config.Ingest
	var order config.Reset
	all := append([]config.Section{order.Section()}, s.Sections()...)
	origins, err := config.Load(all, all, config.Input{Args: in.args, Environ: in.environ})
	if errors.Is(err, config.ErrHelp) {
		return writeHelp(in.stdout, resetHelp, resetSections(all))
	}
	if err != nil {
		return err
	}
	readOnly(&s, origins, &order)
	p, err := newProcess(ctx, &s, origins, in.stderr)
	if err != nil {
		return err
	}
	settings, err := p.resetSettings(ctx)
	if err != nil {
		return err
	}
	return p.reset(ctx, settings, &order, in.stdout)
}

// resetSections are the settings that the command has a use for.
func resetSections(all []config.Section) []config.Section {
	return config.Select(all, func(s config.Setting) bool {
		return !slices.Contains([]string{"topics", "topic-pattern", "assign", "dlq-topic", "http.listen", "http.ready-age", "shutdown-timeout", "progress"}, s.Name) &&
			!strings.HasPrefix(s.Name, "batch.") && !strings.HasPrefix(s.Name, "metrics.")
	})
}

// readOnly lets the settings be those of who reads one partition, and joins no
// group.
func readOnly(s *config.Ingest, origins config.Origins, order *config.Reset) {
	s.Topics, s.TopicPattern = nil, ""
	s.Assign = []config.Partition{{Topic: order.Topic, Number: int32(order.Partition)}}
	s.DLQTopic, s.Kafka.InstanceID, s.Kafka.GroupProtocol = "", "", config.GroupClassic
	delete(origins, "kafka.session-timeout")
}

// resetSettings are those of the pipeline for an archive that is there. Nothing is
// written on the way.
func (p *process) resetSettings(ctx context.Context) (pipeline.Settings, error) {
	s := p.pipelineSettings()
	err := daemon.UntilAnswered(ctx, p.log, func() (err error) { s.Root, err = archive.OpenRoot(ctx, p.bucket); return err })
	if err != nil {
		return s, fmt.Errorf("bucket: %w", err)
	}
	if err := p.keys.OpenKMS(ctx); err != nil {
		return s, err
	}
	s.Keys = p.keys.Ring()
	return s, nil
}

func (p *process) reset(ctx context.Context, s pipeline.Settings, order *config.Reset, stdout io.Writer) error {
	at := pipeline.Partition{Topic: order.Topic, Number: int32(order.Partition)}
	r, err := pipeline.PlanReset(ctx, s, at, order.Reason, p.resetEvents())
	if err != nil {
		return fmt.Errorf("reset-chain: %s/%d: %w", at.Topic, at.Number, err)
	}
	defer r.Close()
	if _, err := io.WriteString(stdout, describeReset(r, p.settings.Log.Tenants)); err != nil {
		return err
	}
	if !order.Yes {
		_, err := io.WriteString(stdout, "\nNothing was done. --yes does it.\n")
		return err
	}
	if err := r.Commit(ctx); err != nil {
		return fmt.Errorf("reset-chain: %s/%d: %w", at.Topic, at.Number, err)
	}
	p.log.Info("chain reset", append(line(r.Line), zap.Int64("ordinal", r.Ordinal), zap.Int("voided", len(r.Voided)), zap.Int("logs", len(r.Logs)), zap.String("reason", r.Reason))...)
	_, err = fmt.Fprintf(stdout, "\nDone: segment %d declares them void, and group %s vouches for it. Start the processes again that stopped for this partition.\n", r.Ordinal, s.Group)
	return err
}

func (p *process) resetEvents() pipeline.Events {
	return pipeline.Events{
		Retrying: func(l archive.Line, key string, attempt int, err error) {
			p.often.Warn("trying again", append(line(l), zap.String("key", key), zap.Int("attempt", attempt), zap.Error(err))...)
		},
		Warn: func(what string, err error) { p.log.Warn(what, zap.Error(err)) },
	}
}

// describeReset says what a reset does, before it is done.
func describeReset(r *pipeline.Reset, tenants bool) string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("Partition %s/%d (topic id %s)", r.Line.Topic, r.Line.Partition, r.Line.TopicID)
	say("What is wrong: %v", r.Why)
	if r.Existing {
		say("Segment %d, written at %s, declares the segments from %d on void, and lacks the voucher by which a start believes it: an earlier run has ended before, or another one is about to. Its reason: %s",
			r.Ordinal, r.Written().Format("2006-01-02T15:04:05Z"), r.Voided[0].Ordinal, quote(r.Reason))
	} else {
		say("Segment %d would declare void, for ever to be seen: %s", r.Ordinal, segments(r.Voided))
	}
	for _, v := range r.Voided {
		say("  segment %d  sha256 %s%s", v.Ordinal, v.SHA256, map[bool]string{true: "  whose rows it holds cannot be told"}[slices.Contains(r.Unread, v.Ordinal)])
	}
	say("Rows that go with them: %d, in %d logs, each of which begins a new epoch with a chain-reset row", r.Rows(), len(r.Logs))
	for i, l := range r.Logs {
		name := fmt.Sprintf("log %d", i+1)
		if tenants {
			name = "tenant " + quote(l.Tenant)
		}
		say("  %s: %d rows stay, %d go; epoch %d", name, l.Size, l.Lost, l.Epoch)
	}
	say("Kafka is read again from offset %d on; it holds %d to %d.", r.Offset, r.Start, r.End)
	if gone := r.Gone(); gone > 0 {
		say("LOST FOR GOOD: Kafka no longer has offsets %d to %d. They become a gap.", r.Offset, r.Offset+gone)
	} else {
		say("Kafka still has all of it: nothing is lost.")
	}
	if r.Unsigned {
		say("No anchor by a key that is known here says where the good part ends: see whether segments before %d are what you expect.", r.Voided[0].Ordinal)
	}
	return b.String()
}

func segments(voided []archive.Voided) string {
	first, last := voided[0].Ordinal, voided[len(voided)-1].Ordinal
	if first == last {
		return fmt.Sprintf("segment %d", first)
	}
	return fmt.Sprintf("segments %d to %d", first, last)
}

// quote quotes what somebody else wrote, so that a terminal only shows it.
func quote(text string) string { return fmt.Sprintf("%q", text) }
