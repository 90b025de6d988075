//go:build it

package cases

import (
	"bytes"
	"strings"
	"testing"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// An ETag is no checksum: an object that came in parts, or was copied by hand,
// has the same bytes and another one. Nobody here is impressed by that: verify,
// a start of ingest that goes on from it, and compaction.
func TestETagsMeanNothing(t *testing.T) {
	s := newStage(t, faults3.Options{Versioned: true}, topic)
	s.govern()
	s.archiving()
	s.produce(topic, "acme", calls("acme", 0, 6)...)
	s.drain()
	s.stop()
	segments := s.store.Keys("log/" + topic + "/")
	for i, key := range append(segments, "ledgerlake.json", s.store.Keys("anchor/" + topic + "/")[0]) {
		before := s.etag(key)
		if i%2 == 1 {
			s.inParts(key)
		} else {
			s.overwrite(key)
		}
		if after := s.etag(key); (i%2 == 1) != (after != before && strings.Contains(after, "-")) {
			t.Fatalf("%s had the ETag %s and has %s: the case shows nothing", key, before, after)
		}
	}
	s.verify(oracle.Proved)

	s.archiving() // it goes on from the newest segment, which came in parts
	s.produce(topic, "acme", calls("acme", 6, 4)...)
	s.drain()
	s.verify(oracle.Proved)
	s.compactor()
	s.compacted(topic, 0)
	file := s.store.Keys("data/acme/")[0]
	s.inParts(file)
	s.await(s.erase("--tenant", "acme", "--turn", "t-3"), "closed")
	s.stop()
	s.verify(oracle.Proved)
	if got := s.rows(s.archive(), "select count(*), count(*) filter (redaction is not null) from rows where topic = '"+topic+"'"); got[0][0] != "10" || got[0][1] != "1" {
		t.Errorf("rows, and rows erased, are %v, want 10 and 1", got)
	}
}

func (s *stage) etag(key string) string {
	s.Helper()
	out, err := s.sdk().HeadObject(s.Context(), &s3.HeadObjectInput{Bucket: bucketName, Key: &key})
	s.must(err)
	return *out.ETag
}

// inParts writes an object's bytes once more, in two parts.
func (s *stage) inParts(key string) {
	s.Helper()
	body, _ := s.store.Object(key)
	c := s.sdk()
	begun, err := c.CreateMultipartUpload(s.Context(), &s3.CreateMultipartUploadInput{Bucket: bucketName, Key: &key})
	s.must(err)
	var parts []types.CompletedPart
	for i, part := range [][]byte{body[:len(body)/2], body[len(body)/2:]} {
		n := awssdk.Int32(int32(i + 1))
		out, err := c.UploadPart(s.Context(), &s3.UploadPartInput{Bucket: bucketName, Key: &key, UploadId: begun.UploadId, PartNumber: n, Body: bytes.NewReader(part)})
		s.must(err)
		parts = append(parts, types.CompletedPart{ETag: out.ETag, PartNumber: n})
	}
	_, err = c.CompleteMultipartUpload(s.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: bucketName, Key: &key, UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
	})
	s.must(err)
}
