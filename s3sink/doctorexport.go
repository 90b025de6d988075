package s3sink

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/archive"
)

// DoctorExport probes whether a store can keep the cursors of exporters: what may
// change is changed by compare-and-swap. An error is no verdict, as with [Doctor].
//
// It costs six requests, and leaves one small object, [SwapProbe].
func DoctorExport(ctx context.Context, b *Bucket) ([]Finding, error) {
	d := &doctor{b: b}
	return d.examine(ctx, []func(context.Context) error{d.list, d.swaps})
}

// SwapProbe is the key that [DoctorExport] probes on. It lies where exporters may
// write, who are not allowed to delete it again.
const SwapProbe = "export/probe.json"

// swaps writes over an object by its tag, and once more by the old one, which has
// to be refused.
func (d *doctor) swaps(ctx context.Context) error {
	_, tag, err := d.b.GetTagged(ctx, SwapProbe)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		tag = ""
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingSwap, "%v: allow s3:GetObject", err)
	case err != nil && isVerdict(err):
		return d.refuse(FindingSwap, "%v: not a store that can keep cursors", err)
	case err != nil:
		return err
	}
	first := d.probe()
	if tag, err = d.b.Swap(ctx, SwapProbe, first, tag); err != nil {
		return d.swapFailed(err)
	}
	second := d.probe()
	if _, err := d.b.Swap(ctx, SwapProbe, second, tag); err != nil {
		return d.swapFailed(err)
	}
	_, err = d.b.Swap(ctx, SwapProbe, d.probe(), tag)
	switch {
	case err == nil:
		return d.refuse(FindingSwap, "a write with an If-Match that no longer matches was accepted: two exporters would both move a cursor; use another store")
	case errors.Is(err, archive.ErrExists):
	case isVerdict(err):
		return d.refuse(FindingSwap, "a write with an If-Match that no longer matches was answered with something else than 412: %v", err)
	default:
		return err
	}
	got, err := d.b.Get(ctx, SwapProbe)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, second):
		d.find(FindingSwap, OK, "another exporter probes at this moment; nothing was written that should have been refused")
	default:
		d.find(FindingSwap, OK, "an object is changed by its ETag, and not by an old one")
	}
	return nil
}

// probe returns a body that was never written.
func (d *doctor) probe() []byte {
	return fmt.Appendf(nil, "{\"probe\":%q,\"what\":\"a probe of ledgerlake: may be deleted\"}\n", rand.Text())
}

func (d *doctor) swapFailed(err error) error {
	switch {
	case errors.Is(err, archive.ErrExists), errors.Is(err, archive.ErrConflict):
		d.find(FindingSwap, OK, "another exporter probes at this moment, and one of the two was refused")
		return nil
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingSwap, "%v: allow s3:PutObject on export/*", err)
	case isVerdict(err):
		return d.refuse(FindingSwap, "the store does not write with If-Match: %v; use another store", err)
	}
	return err
}
