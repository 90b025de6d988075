package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A store is the bucket as one process sees it: the one bucket of the world
// behind a network. It is an archive.Bucket in all that it does, also in what
// it does wrong.
type store struct{ p *process }

var (
	errServer  = errors.New("500 InternalError")
	errBusy    = errors.New("503 SlowDown")
	errTimeout = errors.New("request timed out")
)

// Create is two await points with the write between them.
func (s *store) Create(ctx context.Context, key string, body []byte) (time.Time, error) {
	p, w := s.p, s.p.w
	defer p.enterWrite(ctx, key)()
	at := point{"create", key}
	d, n := p.latency(at)
	draw := w.seed.at(p.name, "create-fault", key, n)
	fault := w.bucketFault(p, "create", draw)
	p.say("create %s (%d bytes)%s", short(key), len(body), fault.label())
	if fault.kind == "delayed-write" {
		w.later(between(scramble(draw), time.Second, 2*grace), p, key, body, "late")
	}
	if err := p.awaitFor(ctx, at, d); err != nil {
		if fault.err == nil {
			p.forsakeWrite(key, body, draw)
		}
		return time.Time{}, err
	}
	if fault.err != nil {
		return time.Time{}, fmt.Errorf("create %s: %w", key, fault.err)
	}
	stored, err := w.put(ctx, p, key, body, p.roundBegan())
	if e := p.await(ctx, point{"created", key}); e != nil {
		return time.Time{}, e
	}
	switch fault.kind {
	case "lost-reply":
		return time.Time{}, fmt.Errorf("create %s: connection reset", key)
	case "exists-after-own-write":
		return stored, fmt.Errorf("create %s: %w", key, archive.ErrExists)
	}
	return stored, err
}

// forsakeWrite is the end of a write whose process gave it up, or died, while it
// was on its way: it may still arrive.
func (p *process) forsakeWrite(key string, body []byte, draw uint64) {
	if chance(scramble(draw+1), 0.5) && !strings.HasPrefix(key, "anchor/") {
		p.w.count("write-after-giving-up")
		p.w.later(between(scramble(draw+2), time.Millisecond, 20*time.Second), p, key, body, "of the dead or gone")
	}
}

// enterWrite notes that a write of a line is in flight: there may be one only.
func (p *process) enterWrite(ctx context.Context, key string) (leave func()) {
	line := path.Dir(key)
	if p.compacts {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.writing[line]; other != nil && other.Err() == nil && ctx.Err() == nil {
		p.w.fail("%s starts a write of %s while another of the line is in flight", p.name, short(key))
	}
	p.writing[line] = ctx
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.writing[line] == ctx {
			delete(p.writing, line)
		}
	}
}

// Get reads an object.
func (s *store) Get(ctx context.Context, key string) ([]byte, error) {
	fault, err := s.read(ctx, "get", key)
	if err != nil {
		return nil, err
	}
	body, err := s.p.w.memory.Get(ctx, key)
	return fault.spoil(body), errors.Join(err, fault.after(key))
}

// GetTail reads the end of an object.
func (s *store) GetTail(ctx context.Context, key string, n int64) ([]byte, int64, error) {
	fault, err := s.read(ctx, "get-tail", key)
	if err != nil {
		return nil, 0, err
	}
	tail, size, err := s.p.w.memory.GetTail(ctx, key, n)
	return fault.spoil(tail), size, errors.Join(err, fault.after(key))
}

// List lists keys, and may fail before the first or in between.
func (s *store) List(ctx context.Context, prefix, after string) iter.Seq2[archive.Object, error] {
	return listing(ctx, s, "list", prefix, func(yield func(archive.Object, error) bool) {
		for o, err := range s.p.w.memory.List(ctx, prefix, after) {
			if !s.p.w.isHidden(o.Key) && !yield(o, err) {
				return
			}
		}
	})
}

// GetRange reads a part of an object.
func (s *store) GetRange(ctx context.Context, key string, offset, n int64) ([]byte, error) {
	fault, err := s.read(ctx, "get-range", key)
	if err != nil {
		return nil, err
	}
	body, err := s.p.w.memory.GetRange(ctx, key, offset, n)
	return fault.spoil(body), errors.Join(err, fault.after(key))
}

// Now tells the store's time.
func (s *store) Now(ctx context.Context) (time.Time, error) {
	if _, err := s.read(ctx, "now", ""); err != nil {
		return time.Time{}, err
	}
	return s.p.w.memory.Now(ctx)
}

// Versions lists versions, and may fail before the first or in between.
func (s *store) Versions(ctx context.Context, prefix string) iter.Seq2[archive.Version, error] {
	return listing(ctx, s, "versions", prefix, s.p.w.memory.Versions(ctx, prefix))
}

// Uploads lists unfinished uploads.
func (s *store) Uploads(ctx context.Context, prefix string) iter.Seq2[archive.Upload, error] {
	return listing(ctx, s, "uploads", prefix, s.p.w.memory.Uploads(ctx, prefix))
}

// Abort ends an upload.
func (s *store) Abort(ctx context.Context, u archive.Upload) error {
	if _, err := s.read(ctx, "abort", u.Key); err != nil {
		return err
	}
	if age := time.Since(u.Begun); age < s.p.w.plan.grace-time.Second {
		s.p.w.fail("%s aborts an upload of %s that is %v old", s.p.name, u.Key, age)
	}
	return s.p.w.memory.Abort(ctx, u)
}

func listing[T any](ctx context.Context, s *store, op, prefix string, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		fault, err := s.read(ctx, op, prefix)
		if err != nil {
			yield(none, err)
			return
		}
		n := 0
		for o, err := range all {
			if e := fault.after(prefix); e != nil && n == 1 {
				yield(none, e)
				return
			}
			if !yield(o, err) {
				return
			}
			n++
		}
		if e := fault.after(prefix); e != nil {
			yield(none, e)
		}
	}
}

// Delete is two await points with the deletes between them. Each version may
// fail by itself, and all of them may go long after whoever asked has given up.
func (s *store) Delete(ctx context.Context, versions []archive.Version) []archive.Kept {
	p, w := s.p, s.p.w
	if len(versions) == 0 {
		return nil
	}
	at := point{"delete", versions[0].Key}
	d, n := p.latency(at)
	draw := w.seed.at(p.name, "delete-fault", at.key, n)
	fault := w.bucketFault(p, "delete", draw)
	p.say("delete %d versions, from %s%s", len(versions), short(at.key), fault.label())
	if fault.kind == "delayed-delete" {
		w.deleteLater(between(scramble(draw), time.Second, 2*w.plan.grace), p, versions)
	}
	if err := p.awaitFor(ctx, at, d); err != nil {
		if fault.err == nil && chance(scramble(draw+1), 0.5) {
			w.deleteLater(between(scramble(draw+2), time.Millisecond, 20*time.Second), p, versions)
		}
		return allKept(versions, err)
	}
	if fault.err != nil {
		return allKept(versions, fault.err)
	}
	var kept []archive.Kept
	for i, v := range versions {
		if fault.kind == "some-keys" && chance(scramble(draw+uint64(i)), 0.5) {
			kept = append(kept, archive.Kept{Version: v, Err: fmt.Errorf("delete %s: %w", v.Key, errServer)})
			continue
		}
		kept = append(kept, w.remove(ctx, p, v)...)
	}
	if err := p.await(ctx, point{"deleted", at.key}); err != nil {
		return allKept(versions, err)
	}
	if fault.kind == "lost-reply" {
		return allKept(versions, errors.New("connection reset"))
	}
	return kept
}

func allKept(versions []archive.Version, err error) (all []archive.Kept) {
	for _, v := range versions {
		all = append(all, archive.Kept{Version: v, Err: fmt.Errorf("delete %s: %w", v.Key, err)})
	}
	return all
}

// remove has the effect of a delete. The oracle looks at each.
func (w *world) remove(ctx context.Context, p *process, v archive.Version) []archive.Kept {
	w.mu.Lock()
	if err := w.mayDelete(v.Key); err != nil {
		w.failLocked("%s deletes %s: %v", p.name, v.Key, err)
	}
	w.mu.Unlock()
	kept := w.memory.Delete(ctx, []archive.Version{v})
	if len(kept) == 0 {
		w.count("version-deleted")
	}
	return kept
}

// deleteLater lets deletes happen some time after whoever asked has given up.
func (w *world) deleteLater(d time.Duration, p *process, versions []archive.Version) {
	w.pending.Add(1)
	versions = slices.Clone(versions)
	go func() {
		defer w.pending.Done()
		time.Sleep(d)
		for _, v := range versions {
			w.remove(context.Background(), p, v)
		}
		w.count("late-delete")
		w.say(p.name, "a delete of %d versions arrives, from %s", len(versions), short(versions[0].Key))
	}()
}

// read is the await point of a read.
func (s *store) read(ctx context.Context, op, key string) (bucketFault, error) {
	p := s.p
	at := point{op, key}
	d, n := p.latency(at)
	draw := p.w.seed.at(p.name, op+"-fault", key, n)
	fault := p.w.bucketFault(p, op, draw)
	p.say("%s %s%s", op, short(key), fault.label())
	if err := p.awaitFor(ctx, at, d); err != nil {
		return fault, err
	}
	if fault.err == nil && p.w.isHidden(key) {
		fault.err = archive.ErrNotFound
	}
	if fault.err != nil {
		return fault, fmt.Errorf("%s %s: %w", op, key, fault.err)
	}
	return fault, nil
}

// A bucketFault is what goes wrong with one request.
type bucketFault struct {
	kind string // "" = nothing
	err  error  // of a request that did nothing
	draw uint64
}

func (f bucketFault) label() string {
	if f.kind == "" {
		return ""
	}
	return ": " + f.kind
}

// spoil cuts or flips what was read, together with the error that says so: a
// Bucket never gives part of an object, or another one, without an error.
func (f bucketFault) spoil(body []byte) []byte {
	switch {
	case len(body) == 0:
	case f.kind == "truncated":
		return body[:f.draw%uint64(len(body))]
	case f.kind == "flipped":
		body[f.draw%uint64(len(body))] ^= 1 << (f.draw >> 32 % 8)
	}
	return body
}

func (f bucketFault) after(key string) error {
	switch f.kind {
	case "truncated":
		return fmt.Errorf("read %s: %w", key, io.ErrUnexpectedEOF)
	case "flipped":
		return fmt.Errorf("read %s: %w", key, archive.ErrDamaged)
	case "list-broken":
		return fmt.Errorf("list %s: connection reset", key)
	}
	return nil
}

// put has its effect: the object is there, or was there. The oracle looks at
// each new one.
func (w *world) put(ctx context.Context, p *process, key string, body []byte, began time.Time) (time.Time, error) {
	if w.isHidden(key) {
		w.fail("%s writes %s to a bucket that went back in time", p.name, short(key))
	}
	at, err := w.memory.Create(ctx, key, body)
	switch {
	case err == nil && strings.HasPrefix(key, archive.LogPrefix):
		w.written(p, key, body)
	case err == nil && strings.HasPrefix(key, "anchor/"):
		w.anchored(p, key, body)
	case err == nil && strings.HasPrefix(key, archive.DataPrefix):
		w.dataWritten(p, key, body)
	case err == nil && strings.HasPrefix(key, "catalog/"):
		w.cataloged(p, key, body, began)
	}
	if there, e := w.memory.Get(ctx, key); errors.Is(err, archive.ErrExists) && e == nil && !p.dead.Load() {
		kind := map[bool]string{true: "met-itself", false: "met-another"}[bytes.Equal(there, body)]
		w.count(kind)
		p.say("%s: %s", short(key), kind)
	}
	return at, err
}

// later lets a write happen some time after its writer has given it up.
func (w *world) later(d time.Duration, p *process, key string, body []byte, why string) {
	w.pending.Add(1)
	body = append([]byte{}, body...)
	began := p.roundBegan()
	go func() {
		defer w.pending.Done()
		time.Sleep(d)
		_, err := w.put(context.Background(), p, key, body, began)
		w.say(p.name, "a write %s arrives at %s: %v", why, short(key), err)
		if err == nil {
			w.count("late-write-landed")
		}
	}()
}
