//go:build it

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/offline"
)

// compactors is how many processes compact an archive, all of its lines each.
const compactors = 2

// grace is how long what a catalog names no more stays readable. It is far less
// than in earnest, and far more than the ledger needs to read a segment.
const grace = 10 * time.Second

// compactAll starts as many compactors as there should be.
func (r *round) compactAll() error {
	for len(r.compact.members) < compactors {
		if err := r.compact.join(); err != nil {
			return err
		}
	}
	return nil
}

// killCompactor kills a compactor while it writes, and starts another one some
// time later.
func (r *round) killCompactor(ctx context.Context) error {
	calm, err := r.busy(ctx)
	defer calm()
	if err != nil {
		return err
	}
	r.compact.leave(r.rng).Kill()
	if err := r.moment(ctx); err != nil {
		return err
	}
	return r.compactAll()
}

func (r *round) killCompactors(ctx context.Context) error {
	calm, err := r.busy(ctx)
	defer calm()
	if err != nil {
		return err
	}
	r.compact.kill()
	return r.compactAll()
}

// sleepCompactor lets a compactor sleep until what it was about to do has been
// done by another one, and what that left behind deleted; and wakes it up.
func (r *round) sleepCompactor(ctx context.Context) error {
	calm, err := r.busy(ctx)
	defer calm()
	if err != nil {
		return err
	}
	sleeper := r.compact.leave(r.rng)
	if err := sleeper.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	calm()
	err = pause(ctx, 2*grace)
	r.compact.members = append(r.compact.members, sleeper)
	return errors.Join(err, sleeper.Signal(syscall.SIGCONT))
}

// compacted waits until every segment has been compacted and deleted, and
// nothing has changed for a while.
func (r *round) compacted(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	quiet, last := time.Now(), ""
	for {
		if err := r.compact.alive(); err != nil {
			return err
		}
		segments, files, all, err := r.objects(ctx)
		if err != nil {
			return err
		}
		if all != last {
			quiet, last = time.Now(), all
		}
		if segments == 0 && files > 0 && time.Since(quiet) > grace/2 {
			r.say("%s: compacted: %d data files", r.name, files)
			return nil
		}
		if pause(ctx, 500*time.Millisecond) != nil {
			return fmt.Errorf("%w: %d segments are left in the end, and %d data files: %w", errWrong, segments, files, ctx.Err())
		}
	}
}

// objects counts segments and data files, and returns the names of all objects.
func (r *round) objects(ctx context.Context) (segments, files int, all string, err error) {
	var names strings.Builder
	pages := s3.NewListObjectsV2Paginator(parts.S3Client(r.store.URL()), &s3.ListObjectsV2Input{Bucket: aws.String(bucket), Prefix: aws.String(r.name + "/")})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return 0, 0, "", err
		}
		for _, o := range page.Contents {
			key := strings.TrimPrefix(*o.Key, r.name+"/")
			names.WriteString(key + "\n")
			switch {
			case strings.HasPrefix(key, archive.LogPrefix):
				segments++
			case strings.HasPrefix(key, "data/"):
				files++
			}
		}
	}
	return segments, files, names.String(), nil
}

// view reads the archive as a user of DuckDB does, in data files and segments,
// and holds it against the ledger: each row is there, once. Where the store's
// objects are no plain files it sees nothing.
func (r *round) view(ctx context.Context) (counts, error) {
	files, ok := r.store.(*parts.S3)
	if !ok {
		return counts{}, ctx.Err()
	}
	script, err := offline.Programs.ReadFile("rows.sql")
	if err != nil {
		return counts{}, err
	}
	folder := strings.ReplaceAll(filepath.Join(files.Dir(bucket), r.name), "'", "''")
	both, next := parts.DuckDBs(), r.ledger.ends()
	rows, err := both[r.rng.IntN(len(both))].Query("SET VARIABLE archive = '"+folder+"'", string(script),
		"select partition, kafka_offset, count(*) filter (kind = 'rejected'), count(*) from rows where kafka_offset is not null group by all")
	if err != nil {
		return counts{}, err
	}
	return r.ledger.compare(rows, next), nil
}
