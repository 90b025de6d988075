package config

import (
	"context"

	"github.com/ledgerlake/ledgerlake/export/event"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/sink/securitylake"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// lakeTypes are the destinations that are lakes.
var lakeTypes = map[string]func() *sinkType{"security-lake": lakeType}

func lakeType() *sinkType {
	var o securitylake.Options
	var store s3sink.Options
	var at string
	url := single("URL", "s3://bucket?region=NAME", func(text string) error {
		_, err := s3sink.ParseURL(text)
		at = text
		return err
	})
	url.hidden = true // someone may have put a secret into it
	settings := []Setting{
		{Name: "url", Required: true, Help: "The lake's bucket: s3://aws-security-data-lake-REGION-ID?region=REGION.", Value: url},
		{Name: "source", Required: true, Help: "The name of the custom source, as it was registered for the class API Activity; /VERSION may follow.", Value: text(&o.Source, "NAME", "the name of a custom source", notEmpty)},
		{Name: "region-of-events", Required: true, Help: "The AWS region that the events are filed under, one that the lake was set up in.", Value: text(&o.Region, "REGION", "a region of AWS", notEmpty)},
		{Name: "account", Required: true, Help: "The AWS account that the events are filed under: 12 digits; or external, or external_NAME, where they are of none.", Value: text(&o.Account, "ACCOUNT", "an account", notEmpty)},
	}
	return &sinkType{
		help: "a custom source of Amazon Security Lake: Parquet, OCSF 1.3, in its partitions", linger: securitylake.Linger, stepwise: true,
		format: event.OCSF13, formats: []event.Format{event.OCSF13},
		settings: append(settings, storeSettings("", &store)...),
		check: func() (name, fault string) {
			switch {
			case !securitylake.ValidSource(o.Source):
				return "source", "no name of a custom source: at most 20 letters, digits, - and _"
			case !securitylake.ValidRegion(o.Region):
				return "region-of-events", "no region of AWS, such as eu-central-1"
			case !securitylake.ValidAccount(o.Account):
				return "account", "want 12 digits, external, or external_NAME"
			}
			return "", ""
		},
		open: func(ctx context.Context, d *Destination) (sink.Sink, error) {
			b, err := s3sink.Open(ctx, at, store)
			if err != nil {
				return nil, err
			}
			if d.Archive != nil && d.Archive.Holds(b) {
				return nil, errInArchive
			}
			o := o
			o.Bucket, o.ArchiveID, o.Version, o.WithoutContent = b, d.ArchiveID, d.Version, !d.Content
			return securitylake.New(o)
		},
	}
}
