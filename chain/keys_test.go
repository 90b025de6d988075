package chain

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
)

var someMaster = []byte("0123456789abcdef0123456789abcdef")

func someLog() Log {
	return Log{ArchiveID: "01KBCDEFGHJKMNPQRSTVWXYZ00", Tenant: "acme", Topic: "audit.calls", TopicID: "AAAAAAAAAAAAAAAAAAAAAA", Partition: 3}
}

// The key of a log is what RFC 5869 makes of the master key and the framed names
// of the log; here it is written out in two HMACs.
func TestLogKeyIsHKDF(t *testing.T) {
	info := "ledgerlake.logkey.v1\ns26:01KBCDEFGHJKMNPQRSTVWXYZ00,s4:acme,s11:audit.calls,s22:AAAAAAAAAAAAAAAAAAAAAA,i3,"
	prk := hmacOf(make([]byte, 32), someMaster)
	want := hmacOf(prk, append([]byte(info), 1))
	if got := LogKey(someMaster, someLog()); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

func hmacOf(key, text []byte) []byte {
	sum := NewHasher(key).digest(NewHasher(key).outer, text, nil)
	return sum[:]
}

// Every part of a log's name changes its key.
func TestLogsHaveKeysOfTheirOwn(t *testing.T) {
	seen := map[string]string{}
	for name, change := range map[string]func(*Log){
		"itself": func(*Log) {}, "archive": func(l *Log) { l.ArchiveID += "1" }, "tenant": func(l *Log) { l.Tenant = "acm" }, "topic": func(l *Log) { l.Topic = "audit" },
		"topic id": func(l *Log) { l.TopicID = "B" }, "partition": func(l *Log) { l.Partition = 4 },
	} {
		l := someLog()
		change(&l)
		key, ok := MasterKeys(someMaster)(l)
		if other, again := seen[string(key)]; !ok || again || len(key) != 32 {
			t.Errorf("%s has the key of %s", name, other)
		}
		seen[string(key)] = name
	}
	if bytes.Equal(LogKey(someMaster, someLog()), LogKey(append([]byte{0}, someMaster...), someLog())) {
		t.Error("another master key gives the same")
	}
}

func TestParseKey(t *testing.T) {
	long := bytes.Repeat([]byte{0xfb, 0xff}, 20)
	for _, text := range []string{
		hex.EncodeToString(long), strings.ToUpper(hex.EncodeToString(long)) + "\n", base64.StdEncoding.EncodeToString(long), " " + base64.URLEncoding.EncodeToString(long),
		base64.RawStdEncoding.EncodeToString(long) + "\r\n", base64.RawURLEncoding.EncodeToString(long),
	} {
		if key, err := ParseKey(text); err != nil || !bytes.Equal(key, long) {
			t.Errorf("%q: %x, %v", text, key, err)
		}
	}
	for _, text := range []string{"", "secret!", hex.EncodeToString(long[:31]), base64.StdEncoding.EncodeToString(long[:16]), hex.EncodeToString(long)[1:] + "g-+"} {
		if key, err := ParseKey(text); err == nil || !strings.Contains(err.Error(), "32 random bytes or more") {
			t.Errorf("%q: %x, %v", text, key, err)
		}
	}
}

// Different logs have files of different names, none of which leaves the folder.
func TestLogKeyFile(t *testing.T) {
	l := someLog()
	if got := LogKeyFile(l); got != "audit.calls/AAAAAAAAAAAAAAAAAAAAAA/00003/acme" {
		t.Error(got)
	}
	for _, tenant := range []string{"..", "a/b", "../../x", ".hidden"} {
		l.Tenant = tenant
		if name := LogKeyFile(l); strings.Count(name, "/") != 3 || strings.Contains(name, "/.") {
			t.Errorf("%q: %s", tenant, name)
		}
	}
}

// Hashers give each log its own key, however many there are, and the plain hash
// where the scheme is that; the vectors pin what a key does.
func TestHashersGiveEachLogItsKey(t *testing.T) {
	v, err := readVectors(vectorsBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	key, err := parseHex(v.HMAC.Key)
	if err != nil {
		t.Fatal(err)
	}
	keyOf := func(l Log) []byte {
		if l == v.Genesis.log() {
			return key
		}
		return LogKey(someMaster, l)
	}
	h := NewHashers(func(l Log) ([]byte, bool) { return keyOf(l), l.Tenant != "stranger" })
	other := someLog()
	for i := range 2 * maxOuters {
		other.Tenant = fmt.Sprint("tenant ", i%(maxOuters+500))
		want := *liveRow()
		NewHasher(keyOf(other)).Stamp(&want, somePrev, someSalt)
		got, err := h.For(SchemeHMACv1, other)
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Check(&want); err != nil {
			t.Fatalf("%s: %v", other.Tenant, err)
		}
	}
	row, err := v.Rows[v.HMAC.Rows[0].Row].stamped(NewHasher(key), v.HMAC.Genesis)
	if err != nil {
		t.Fatal(err)
	}
	own, err := h.For(SchemeHMACv1, v.Genesis.log())
	if err != nil || own.RowHash(row) != v.HMAC.Rows[0].RowHash {
		t.Errorf("the vectors' log: %v", err)
	}
	if other, _ := h.For(SchemeHMACv1, other); other.RowHash(row) == v.HMAC.Rows[0].RowHash {
		t.Error("another log has the same key")
	}
	plain, err := h.For(SchemeV1, v.Genesis.log())
	if want := NewHasher(nil).RowHash(row); err != nil || plain.RowHash(row) != want {
		t.Errorf("the plain scheme: %v", err)
	}
	if _, err := h.For(SchemeHMACv1, Log{Tenant: "stranger"}); !errors.Is(err, ErrNoKey) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := NewHashers(nil).For(SchemeHMACv1, someLog()); !errors.Is(err, ErrNoKey) {
		t.Errorf("without keys: %v", err)
	}
	if _, err := h.For("md5", someLog()); err == nil {
		t.Error("an unknown scheme is taken")
	}
}

func TestKeysOr(t *testing.T) {
	only := func(tenant, key string) Keys {
		return func(l Log) ([]byte, bool) { return []byte(key), l.Tenant == tenant }
	}
	both := only("a", "1").Or(only("b", "2")).Or(nil)
	for tenant, want := range map[string]string{"a": "1", "b": "2"} {
		if key, ok := both(Log{Tenant: tenant}); !ok || string(key) != want {
			t.Errorf("%s: %s, %v", tenant, key, ok)
		}
	}
	if both.Has(Log{Tenant: "c"}) || Keys(nil).Has(Log{}) || !Keys(nil).Or(only("a", "1")).Has(Log{Tenant: "a"}) {
		t.Error("keys that are not there")
	}
}
