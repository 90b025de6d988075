package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// OpenBucket opens a bucket. All that can be wrong is a setting, because no
// request is made.
func OpenBucket(ctx context.Context, url string, o s3sink.Options) (*s3sink.Bucket, error) {
	bucket, err := s3sink.Open(ctx, url, o)
	if err != nil {
		return nil, &config.Error{Name: "s3", Fault: err.Error()}
	}
	return bucket, nil
}

// WriteFindings writes one line a finding.
func WriteFindings(w io.Writer, findings []s3sink.Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", f.Level, f.Name, f.Detail)
	}
	return table.Flush() // has the error of any write before
}

// Consult logs the warnings among findings, and returns what refuses the store.
func Consult(ctx context.Context, log *zap.Logger, look func() ([]s3sink.Finding, error)) error {
	var findings []s3sink.Finding
	err := UntilAnswered(ctx, log, func() (err error) { findings, err = look(); return err })
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	for _, f := range findings {
		if f.Level == s3sink.Warn {
			log.Warn("bucket", zap.String("finding", f.Name), zap.String("detail", f.Detail))
		}
	}
	return s3sink.Verdict(findings)
}

// damageTries is how often in a row what is asked for has to arrive damaged to be
// called so.
const damageTries = 5

// UntilAnswered asks until the store answers: no fault of the way to it is a
// verdict on the settings. An object that stays damaged is one.
func UntilAnswered(ctx context.Context, log *zap.Logger, ask func() error) error {
	for attempt := 1; ; attempt++ {
		err := ask()
		if err == nil || !s3sink.Transient(err) || attempt >= damageTries && errors.Is(err, s3sink.ErrDamaged) {
			return err
		}
		log.Warn("the bucket does not answer; trying again", zap.Int("attempt", attempt), zap.Error(err))
		if pipeline.BackOff(ctx, attempt) != nil {
			return err
		}
	}
}
