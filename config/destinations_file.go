package config

import (
	"context"
	"errors"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/filesink"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// fileTypes are the destinations that are files.
var fileTypes = map[string]func() *sinkType{"file": fileType, "s3": s3Type}

// fileLinger is how long rows wait for others, so that files do not get small.
const fileLinger = "1m"

// A fileSink is the settings of both.
type fileSink struct {
	dir         string
	url         string
	s3          s3sink.Options
	compression string
}

func (f *fileSink) common() Setting {
	return Setting{
		Name: "compression", Default: string(filesink.Gzip), Help: "How files are compressed.",
		Value: oneOf(&f.compression, string(filesink.None), string(filesink.Gzip), string(filesink.Zstd)),
	}
}

func (f *fileSink) options(d *Destination, s filesink.Store) filesink.Options {
	return filesink.Options{
		Store: s, Compression: filesink.Compression(f.compression), Text: d.Format == event.CEF || d.Format == event.LEEF,
		Refused: func(err error) bool { return errors.Is(err, archive.ErrDenied) || errors.Is(err, s3sink.ErrNoBucket) },
	}
}

func fileType() *sinkType {
	f := &fileSink{}
	linger, _ := ParseDuration(fileLinger)
	return &sinkType{
		help: "files in a local folder: one event a line, compressed, with a manifest", linger: linger, stepwise: true,
		settings: []Setting{
			{Name: "path", Required: true, Help: "The folder. It is made where it is not there.", Value: text(&f.dir, "FOLDER", "the path of a folder", notEmpty)},
			f.common(),
		},
		open: func(_ context.Context, d *Destination) (sink.Sink, error) {
			store, err := filesink.Dir(f.dir)
			if err != nil {
				return nil, err
			}
			return filesink.New(f.options(d, store))
		},
	}
}

// errInArchive: a file of a tenant called log would lie among the archive's segments.
var errInArchive = errors.New("url: that is within the archive itself: set another bucket, or a prefix beside the archive's")

func s3Type() *sinkType {
	f := &fileSink{}
	linger, _ := ParseDuration(fileLinger)
	url := single("URL", "s3://bucket/prefix?setting=value", func(text string) error {
		_, err := s3sink.ParseURL(text)
		f.url = text
		return err
	})
	url.hidden = true // someone may have put a secret into it
	settings := []Setting{
		{Name: "url", Required: true, Help: "The bucket: s3://BUCKET/PREFIX?endpoint=URL&region=NAME. Never the archive's own prefix.", Value: url},
		f.common(),
	}
	return &sinkType{
		help: "files in a bucket: one event a line, compressed, with a manifest", linger: linger, stepwise: true,
		settings: append(settings, storeSettings("", &f.s3)...),
		open: func(ctx context.Context, d *Destination) (sink.Sink, error) {
			b, err := s3sink.Open(ctx, f.url, f.s3)
			if err != nil {
				return nil, err
			}
			if d.Archive != nil && d.Archive.Holds(b) {
				return nil, errInArchive
			}
			return filesink.New(f.options(d, filesink.Bucket(b)))
		},
	}
}
