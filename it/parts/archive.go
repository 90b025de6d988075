//go:build it

package parts

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/internal/workload"
)

// MakeKey makes a key in a file, and returns its public half.
func MakeKey(path, name string) (vkey string, err error) {
	skey, vkey, err := sign.Generate(rand.Reader, name)
	if err != nil {
		return "", err
	}
	return vkey, os.WriteFile(path, []byte(skey+"\n"), 0o600)
}

// MakeArchive writes the root of an archive below a prefix of a bucket, "" or one
// with a slash at its end: what a catalog names no more is there for grace, whole
// seconds.
func MakeArchive(ctx context.Context, endpoint, bucket, prefix, id string, grace time.Duration) error {
	root, err := json.Marshal(archive.Root{
		Format: archive.Format, ArchiveID: id, CreatedAt: time.Now().UTC().Format(archive.TimeLayout), GraceSeconds: int64(grace / time.Second),
	})
	if err != nil {
		return err
	}
	_, err = S3Client(endpoint).PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(bucket), Key: aws.String(prefix + archive.RootKey), Body: strings.NewReader(string(root)),
	})
	return err
}

// KafkaRecord returns a record as a producer sends it.
func KafkaRecord(r *workload.Record) *kgo.Record {
	out := &kgo.Record{Key: r.Key, Value: r.Value, Timestamp: r.Time}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.Name, Value: h.Value})
	}
	return out
}

// GapQueries returns the SQL of docs/export-gaps.md, in order, reading what is
// in folder.
func GapQueries(folder string) ([]string, error) {
	page, err := os.ReadFile(filepath.Join(Root(), "docs", "export-gaps.md"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, part := range strings.Split(string(page), "```sql\n")[1:] {
		sql, _, _ := strings.Cut(part, "```")
		sql = strings.ReplaceAll(sql, "'events/", "'"+folder+"/")
		all = append(all, strings.ReplaceAll(sql, "'lake/", "'"+folder+"/"))
	}
	return all, nil
}
