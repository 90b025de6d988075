package s3sink

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestParseURL(t *testing.T) {
	yes := true
	for raw, want := range map[string]URL{
		"s3://bucket":                     {Bucket: "bucket"},
		"s3://bucket/":                    {Bucket: "bucket"},
		"s3://bucket/a":                   {Bucket: "bucket", Prefix: "a/"},
		"s3://bucket/a/b/":                {Bucket: "bucket", Prefix: "a/b/"},
		"s3://my_Bucket.x-1/a%20b/%C3%A9": {Bucket: "my_Bucket.x-1", Prefix: "a b/é/"},
		"s3://bucket/p?endpoint=https://minio:9000&region=eu-west-1&path-style=true": {
			Bucket: "bucket", Prefix: "p/", Options: Options{Endpoint: "https://minio:9000", Region: "eu-west-1", PathStyle: &yes},
		},
		"s3://bucket?profile=p&role-arn=arn:aws:iam::1:role/x&external-id=e&sse=aws:kms&kms-key=k&storage-class=STANDARD_IA&checksum=md5&timeout=5s&attempts=7": {
			Bucket: "bucket", Options: Options{
				Profile: "p", RoleARN: "arn:aws:iam::1:role/x", ExternalID: "e", SSE: "aws:kms", KMSKey: "k",
				StorageClass: "STANDARD_IA", Checksum: MD5, Timeout: 5 * time.Second, Attempts: 7,
			},
		},
	} {
		got, err := ParseURL(raw)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("ParseURL(%q) = %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

// What is refused is named, and a secret is never repeated.
func TestParseURLRefuses(t *testing.T) {
	for raw, says := range map[string]string{
		"":                          "s3://",
		"bucket/prefix":             "s3://",
		"https://bucket/prefix":     "s3://",
		"s3:bucket":                 "s3://",
		"s3://":                     "not the name of a bucket",
		"s3://ab":                   "not the name of a bucket",
		"s3://bucket:80/x":          "not the name of a bucket",
		"s3://a b c":                "not a URL",
		"s3://logs--use1-az4--x-s3": "directory bucket",
		"s3://SECRET:SECRET@bucket": "credentials",
		"s3://SECRET@bucket":        "credentials",
		"s3://bucket/a#b":           "fragment",
		"s3://bucket/a#":            "fragment",
		"s3://bucket//a":            `a step ""`,
		"s3://bucket/a//b":          `a step ""`,
		"s3://bucket/../a":          `a step ".."`,
		"s3://bucket/a/%2e%2e/b":    `a step ".."`,
		"s3://bucket/.":             `a step "."`,
		"s3://bucket/a%00":          "control characters",
		"s3://bucket/%ff":           "UTF-8",
		"s3://bucket/" + strings.Repeat("a", 401):    "400 bytes",
		"s3://bucket?acces-key=SECRET":               `"acces-key"`,
		"s3://bucket?access-key=SECRET":              "access-key is a secret",
		"s3://bucket?secret-key=SECRET":              "secret-key is a secret",
		"s3://bucket?session-token=SECRET":           "session-token is a secret",
		"s3://bucket?region=":                        "region is empty",
		"s3://bucket?region=a&region=b":              "region is given 2 times",
		"s3://bucket?region=a;b=c":                   "setting=value",
		"s3://bucket?region=a%0Ab":                   "printable",
		"s3://bucket?path-style=perhaps":             "path-style=perhaps",
		"s3://bucket?checksum=crc":                   "want crc32, sha256, md5 or none",
		"s3://bucket?timeout=5":                      "timeout=5",
		"s3://bucket?timeout=-5s":                    "negative",
		"s3://bucket?attempts=11":                    "1 to 10",
		"s3://bucket?attempts=many":                  "attempts=many",
		"s3://bucket?sse=AES":                        "sse=AES",
		"s3://bucket?sse=AES256&kms-key=k":           "kms-key goes with sse=aws:kms",
		"s3://bucket?storage-class=GLACIER":          "cannot be read at once",
		"s3://bucket?external-id=x":                  "external-id goes with role-arn",
		"s3://bucket?endpoint=minio:9000":            "want http://",
		"s3://bucket?endpoint=ftp://minio":           "want http://",
		"s3://bucket?endpoint=http://":               "want http://",
		"s3://bucket?endpoint=http://u:SECRET@minio": "credentials",
		"s3://bucket?endpoint=http://minio/path":     "nothing may follow",
		"s3://bucket?endpoint=http://minio%3Fx%3Dy":  "nothing may follow",
	} {
		u, err := ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParseURL(%q) = %+v, %v; want an error that says %q", raw, u, err, says)
			continue
		}
		if strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "\n") {
			t.Errorf("ParseURL(%q): the error repeats a secret or is no line: %q", raw, err)
		}
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	for says, o := range map[string]Options{
		"access-key and secret-key go together": {AccessKey: "k"},
		"session-token goes with access-key":    {SessionToken: "t"},
		"two sources of credentials":            {AccessKey: "k", SecretKey: "s", Profile: "p"},
		"checksum=crc64":                        {Checksum: "crc64"},
		"attempts=-1":                           {Attempts: -1},
	} {
		if _, err := Open(t.Context(), "s3://bucket?region=r", o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Open with %+v: %v; want an error that says %q", o, err, says)
		}
	}
}

// The URL is about this bucket, and goes before settings for all.
func TestURLGoesBeforeOptions(t *testing.T) {
	no := false
	b, err := Open(t.Context(), "s3://bucket?region=of-url&checksum=md5&path-style=true", Options{
		Region: "of-options", Checksum: SHA256, PathStyle: &no, StorageClass: "STANDARD_IA", AccessKey: "k", SecretKey: "s3cr3t",
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := "s3://bucket/?attempts=3&checksum=md5&path-style=true&region=of-url&storage-class=STANDARD_IA&timeout=30s"; b.String() != want {
		t.Errorf("opened %s, want %s", b, want)
	}
}

func TestNoRegionIsSaidAtOpen(t *testing.T) {
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	if _, err := Open(t.Context(), "s3://bucket", Options{}); err == nil || !strings.Contains(err.Error(), "set region") {
		t.Errorf("Open = %v, want an error that says what to set", err)
	}
}

// Settings files know options by the same names, secrets included.
func TestSetKnowsEverySetting(t *testing.T) {
	values := map[string]string{
		"endpoint": "http://minio:9000", "path-style": "true", "checksum": "sha256", "timeout": "1m0s", "attempts": "5", "sse": "AES256",
	}
	for _, s := range Settings() {
		value := values[s.Name]
		if value == "" {
			value = "value-of-" + s.Name
		}
		var o Options
		if err := o.Set(s.Name, value); err != nil {
			t.Errorf("Set(%s): %v", s.Name, err)
		}
		if got := s.get(o); got != value {
			t.Errorf("after Set(%s, %s) it is %q", s.Name, value, got)
		}
		if reflect.ValueOf(o).IsZero() {
			t.Errorf("Set(%s) sets nothing", s.Name)
		}
	}
	var o Options
	if err := o.Set("secret-key", "se\ncret"); err == nil || strings.Contains(err.Error(), "cret\"") || strings.Contains(err.Error(), "se\n") {
		t.Errorf("Set of a secret that is not valid: %v", err)
	}
}

// What is parsed can be written and is parsed as the same again; a prefix never
// begins with a slash, always ends with one, and stays inside.
func FuzzParseURL(f *testing.F) {
	for _, raw := range []string{
		"s3://bucket", "s3://bucket/a/b?region=x&path-style=true&endpoint=http://h:1", "s3://bucket/a%20b%2F%2Fc", "s3://bucket/%2e%2e/x",
		"s3://u:p@bucket/#x", "s3://bucket?timeout=1h1ms&attempts=2&checksum=when_required", "s3://bucket/~2F+%2B", "s3://bucket?region=%25",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := ParseURL(raw)
		if err != nil {
			return
		}
		again, err := ParseURL(u.String())
		if err != nil || !reflect.DeepEqual(again, u) {
			t.Errorf("%q is %+v, written %s, which is %+v, %v", raw, u, u, again, err)
		}
		if u.Prefix == "" {
			return
		}
		if strings.HasPrefix(u.Prefix, "/") || !strings.HasSuffix(u.Prefix, "/") {
			t.Errorf("%q: prefix %q", raw, u.Prefix)
		}
		if err := checkKey(u.Prefix + "log/x"); err != nil {
			t.Errorf("%q: keys below %q are refused: %v", raw, u.Prefix, err)
		}
	})
}

// Whatever the prefix, the archive in it sees its own keys and no others.
func FuzzPrefix(f *testing.F) {
	f.Add("archive", "log/x")
	f.Add("a b/é", "a~2Fb")
	f.Add("", "log/x")
	f.Add("%41/+", "+%2B")
	f.Fuzz(func(t *testing.T, prefix, key string) {
		prefix, err := parsePrefix(prefix)
		if err != nil || checkKey(key) != nil || checkText(key) != nil {
			return
		}
		s := newStore(t)
		b := s.open(t, URL{Prefix: prefix}.String()[len("s3:///"):])
		if b.url.Prefix != prefix {
			t.Fatalf("opened prefix %q, want %q", b.url.Prefix, prefix)
		}
		for _, stranger := range []string{"!" + prefix + "x", strings.TrimSuffix(prefix, "/") + "-2/x"} {
			if prefix != "" {
				s.objects[stranger] = nil
			}
		}
		if _, err := b.Create(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.objects[prefix+key]; !ok {
			t.Errorf("key %q below %q is stored as %v", key, prefix, s.objects)
		}
		got, err := b.Get(t.Context(), key)
		if err != nil || string(got) != key {
			t.Errorf("Get(%q) below %q = %q, %v", key, prefix, got, err)
		}
		if keys, err := collect(b.List(t.Context(), "", "")); err != nil || len(keys) != 1 || keys[0] != key {
			t.Errorf("List below %q = %q, %v; want %q", prefix, keys, err, key)
		}
	})
}

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		bucket, other string
		want          bool
	}{
		{"s3://audit", "s3://audit", true},
		{"s3://audit", "s3://audit/log", true},
		{"s3://audit/prod", "s3://audit/prod/", true},
		{"s3://audit/prod", "s3://audit/prod2", false},
		{"s3://audit/prod", "s3://audit", false},
		{"s3://audit", "s3://audit-copies", false},
		{"s3://audit?endpoint=http://a:1", "s3://audit?endpoint=http://a:1/", true},
		{"s3://audit?endpoint=http://a:1", "s3://audit?endpoint=http://b:1", false},
	} {
		var at [2]*Bucket
		for i, u := range []string{c.bucket, c.other} {
			b, err := Open(t.Context(), u, Options{AccessKey: "k", SecretKey: "s", Region: "us-east-1"})
			if err != nil {
				t.Fatal(err)
			}
			at[i] = b
		}
		if got := at[0].Holds(at[1]); got != c.want {
			t.Errorf("%s holds %s: %v", c.bucket, c.other, got)
		}
	}
}
