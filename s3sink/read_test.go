package s3sink

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Whatever comes instead of the object, no part of it and nothing else is
// ever returned as the object.
func TestGetReturnsTheObjectOrAnError(t *testing.T) {
	const whole = "all of the object"
	for _, c := range []struct {
		name    string
		reply   func(w http.ResponseWriter)
		damaged bool
	}{
		{"cut in the middle", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			w.Write([]byte(whole[:5]))
			w.(http.Flusher).Flush()
			cut()
		}, false},
		{"cut before the first byte", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(len(whole)))
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			cut()
		}, false},
		{"no length", func(w http.ResponseWriter) {
			w.(http.Flusher).Flush()
			w.Write([]byte(whole))
		}, true},
		{"more than belongs there", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(256<<20+1))
			w.Write([]byte(whole))
		}, true},
		{"another byte", func(w http.ResponseWriter) {
			w.Header().Set("X-Amz-Checksum-Crc32", crc32Of([]byte(whole)))
			w.Write([]byte(strings.ToUpper(whole)))
		}, true},
		{"short, and said to be so", func(w http.ResponseWriter) {
			w.Header().Set("X-Amz-Checksum-Crc32", crc32Of([]byte(whole)))
			w.Write([]byte(whole[:5]))
		}, true},
		{"nothing, and said to be so", func(w http.ResponseWriter) {
			w.Header().Set("X-Amz-Checksum-Crc32", crc32Of([]byte(whole)))
			w.Header().Set("Content-Length", "0")
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			s.hook = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
				c.reply(w)
				return true
			}
			b := s.open(t, "")
			got, err := b.Get(t.Context(), "log/x")
			if err == nil || got != nil || errors.Is(err, ErrDamaged) != c.damaged || errors.Is(err, archive.ErrNotFound) {
				t.Errorf("Get = %q, %v; want an error, ErrDamaged: %v", got, err, c.damaged)
			}
			if n := b.Requests()["GetObject"]; n != 3 {
				t.Errorf("%d attempts, want 3", n)
			}
		})
	}
}

// What passes by itself is not the caller's business.
func TestAReadIsTriedAgain(t *testing.T) {
	s := newStore(t)
	s.objects["log/x"] = []byte("x")
	var n atomic.Int64
	s.hook = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		switch n.Add(1) % 3 {
		case 1:
			answer(w, 503, "SlowDown")
			return true
		case 2:
			cut()
		}
		return false
	}
	b := s.open(t, "")
	if got, err := b.Get(t.Context(), "log/x"); err != nil || string(got) != "x" {
		t.Errorf("Get = %q, %v", got, err)
	}
	if got, size, err := b.GetTail(t.Context(), "log/x", 8); err != nil || string(got) != "x" || size != 1 {
		t.Errorf("GetTail = %q, %d, %v", got, size, err)
	}
	if got, err := collect(b.List(t.Context(), "", "")); err != nil || !slices.Equal(got, []string{"log/x"}) {
		t.Errorf("List = %q, %v", got, err)
	}
}

// Stores answer a range in several ways; only answers that fit it count.
func TestGetTailReadsOnlyWhatFits(t *testing.T) {
	const object = "0123456789"
	for _, c := range []struct {
		name         string
		status       int
		contentRange string
		body         string
		tail         string // "": an error
	}{
		{"as asked", 206, "bytes 6-9/10", "6789", "6789"},
		{"the whole object instead", 200, "", object, "6789"},
		{"another part", 206, "bytes 0-3/10", "0123", ""},
		{"fewer bytes than it says", 206, "bytes 6-9/10", "678", ""},
		{"more bytes than it says", 206, "bytes 6-9/10", "56789", ""},
		{"fewer than asked", 206, "bytes 7-9/10", "789", ""},
		{"not to the end", 206, "bytes 5-8/10", "5678", ""},
		{"no size", 206, "bytes 6-9/*", "6789", ""},
		{"no numbers", 206, "bytes a-b/c", "6789", ""},
		{"negative", 206, "bytes -6-9/10", "6789", ""},
		{"overflow", 206, "bytes 6-9/99999999999999999999", "6789", ""},
		{"backwards", 206, "bytes 9-6/10", "6789", ""},
		{"another unit", 206, "lines 6-9/10", "6789", ""},
		{"refused, and shorter than the range", 416, "", "", "xyz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			s.objects["log/x"] = []byte("xyz") // for the request without a range
			s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				switch {
				case r.Header.Get("Range") == "":
					return false
				case r.Header.Get("Range") != "bytes=-4":
					t.Errorf("Range: %s", r.Header.Get("Range"))
				case c.status == 416:
					answer(w, 416, "InvalidRange")
					return true
				case c.contentRange != "":
					w.Header().Set("Content-Range", c.contentRange)
				}
				// Some stores send the sum of the whole with a part of it.
				w.Header().Set("X-Amz-Checksum-Crc32", crc32Of([]byte(object)))
				w.WriteHeader(c.status)
				w.Write([]byte(c.body))
				return true
			}
			tail, size, err := s.open(t, "", func(o *Options) { o.Attempts = 1 }).GetTail(t.Context(), "log/x", 4)
			if c.tail == "" {
				if !errors.Is(err, ErrDamaged) || tail != nil {
					t.Errorf("GetTail = %q, %v; want ErrDamaged", tail, err)
				}
				return
			}
			wantSize := int64(10)
			if c.status == 416 {
				wantSize = 3
			}
			if err != nil || string(tail) != c.tail || size != wantSize {
				t.Errorf("GetTail = %q of %d, %v; want %q of %d", tail, size, err, c.tail, wantSize)
			}
		})
	}
}

// A store that refuses checksums is not asked for them either.
func TestChecksumsOnReads(t *testing.T) {
	for c, want := range map[Checksum]string{CRC32: "ENABLED", SHA256: "ENABLED", MD5: "", NoChecksum: ""} {
		s := newStore(t)
		s.objects["log/x"] = bytes.Repeat([]byte("x"), 100)
		b := s.open(t, "", func(o *Options) { o.Checksum = c })
		if _, err := b.Get(t.Context(), "log/x"); err != nil {
			t.Fatal(err)
		}
		if _, _, err := b.GetTail(t.Context(), "log/x", 8); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, r := range s.seen {
			got[r.Header.Get("Range")] = r.Header.Get("X-Amz-Checksum-Mode")
		}
		if want := map[string]string{"": want, "bytes=-8": ""}; !maps.Equal(got, want) {
			t.Errorf("checksum=%s: asked with %v, want %v", c, got, want)
		}
	}
}
