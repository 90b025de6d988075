package s3sink

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
)

// DoctorExport probes whether a store can keep the cursors of exporters: what may
// change is changed by compare-and-swap. An error is no verdict, as with [Doctor].
//
// It costs six requests, and leaves one small object, [SwapProbe].
func DoctorExport(ctx context.Context, b *Bucket) ([]Finding, error) {
	d := &doctor{b: b, swapKey: SwapProbe, swapper: "exporter"}
	return d.examine(ctx, []func(context.Context) error{d.list, d.swaps})
}

// DoctorManifests probes in the same way, and at the same cost, whether a store can
// keep the manifests of a compactor. It leaves [archive.ManifestProbe].
func DoctorManifests(ctx context.Context, b *Bucket) ([]Finding, error) {
	d := &doctor{b: b, swapKey: archive.ManifestProbe, swapper: "compactor"}
	return d.examine(ctx, []func(context.Context) error{d.swaps})
}

// SwapProbe is the key that [DoctorExport] probes on. It lies where exporters may
// write, who are not allowed to delete it again.
const SwapProbe = "export/probe.json"

// swaps writes over an object by its tag, and once more by the old one, which has
// to be refused.
func (d *doctor) swaps(ctx context.Context) error {
	_, tag, err := d.b.GetTagged(ctx, d.swapKey)
	switch {
	case errors.Is(err, archive.ErrNotFound):
		tag = ""
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingSwap, "%v: allow s3:GetObject", err)
	case err != nil && isVerdict(err):
		return d.refuse(FindingSwap, "%v: not a store that can keep what changes", err)
	case err != nil:
		return err
	}
	first := d.probe()
	if tag, err = d.b.Swap(ctx, d.swapKey, first, tag); err != nil {
		return d.swapFailed(err)
	}
	second := d.probe()
	if _, err := d.b.Swap(ctx, d.swapKey, second, tag); err != nil {
		return d.swapFailed(err)
	}
	_, err = d.b.Swap(ctx, d.swapKey, d.probe(), tag)
	switch {
	case err == nil:
		return d.refuse(FindingSwap, "a write with an If-Match that no longer matches was accepted: of two %ss one would write over what the other has written; use another store", d.swapper)
	case errors.Is(err, archive.ErrExists):
	case isVerdict(err):
		return d.refuse(FindingSwap, "a write with an If-Match that no longer matches was answered with something else than 412: %v", err)
	default:
		return err
	}
	got, err := d.b.Get(ctx, d.swapKey)
	switch {
	case err != nil:
		return err
	case !bytes.Equal(got, second):
		d.find(FindingSwap, OK, "another %s probes at this moment; nothing was written that should have been refused", d.swapper)
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
		d.find(FindingSwap, OK, "another %s probes at this moment, and one of the two was refused", d.swapper)
		return nil
	case errors.Is(err, archive.ErrDenied):
		return d.refuse(FindingSwap, "%v: allow s3:PutObject on %s*", err, d.swapKey[:strings.IndexByte(d.swapKey, '/')+1])
	case isVerdict(err):
		return d.refuse(FindingSwap, "the store does not write with If-Match: %v; use another store", err)
	}
	return err
}
