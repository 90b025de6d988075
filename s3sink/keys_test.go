package s3sink

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A store that from now on takes another session alone refuses the old one as
// expired or as forbidden, never changes anything by it, and takes the next try
// after somebody has put new credentials where the old ones were.
func TestCredentialsAreFetchedAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	fill := func(format string) func(token string) {
		return func(token string) {
			if err := os.WriteFile(file, fmt.Appendf(nil, format, token), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name   string
		fill   func(token string)
		env    map[string]string
		change func(*Options)
	}{
		{
			name: "shared credentials file",
			fill: fill("[default]\naws_access_key_id = key\naws_secret_access_key = secret\naws_session_token = %s\n"),
			env:  map[string]string{"AWS_SHARED_CREDENTIALS_FILE": file},
		},
		{
			name: "process that promised more than it held",
			fill: fill(`{"Version": 1, "AccessKeyId": "key", "SecretAccessKey": "secret", "SessionToken": "%s", "Expiration": "2100-01-01T00:00:00Z"}`),
			env:  map[string]string{"AWS_CONFIG_FILE": profile(t, "credential_process = cat "+file)},
		},
		{
			name: "static keys in files",
			fill: fill("%s"),
			change: func(o *Options) {
				o.AccessKey, o.SecretKey, o.SessionToken = "key", "secret", "one"
				o.Renew = func(o *Options) error {
					token, err := os.ReadFile(file)
					o.SessionToken = string(token)
					return err
				}
			},
		},
	} {
		for _, refusal := range []struct {
			status int
			code   string
		}{{400, "ExpiredToken"}, {403, "InvalidAccessKeyId"}, {403, "AccessDenied"}} {
			t.Run(tt.name+", "+refusal.code, func(t *testing.T) {
				for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE"} {
					t.Setenv(name, "") // of whoever runs the test
				}
				t.Setenv("AWS_CONFIG_FILE", "none")
				t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
				for name, value := range tt.env {
					t.Setenv(name, value)
				}
				s := newStore(t)
				valid := "one"
				s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
					if r.Header.Get("X-Amz-Security-Token") == valid {
						return false
					}
					answer(w, refusal.status, refusal.code)
					return true
				}
				tt.fill("one")
				b := s.open(t, "", func(o *Options) {
					o.AccessKey, o.SecretKey = "", ""
					if tt.change != nil {
						tt.change(o)
					}
				})
				b.keys.every = 0
				if _, err := b.Create(t.Context(), "log/1", []byte("1")); err != nil {
					t.Fatal(err)
				}
				valid = "two"
				for range 3 { // nobody has renewed them yet
					if _, err := b.Create(t.Context(), "log/2", []byte("2")); !errors.Is(err, archive.ErrDenied) {
						t.Fatalf("error %v, want a denial", err)
					}
				}
				if len(s.objects) != 1 {
					t.Errorf("%d objects after denials, want 1", len(s.objects))
				}
				tt.fill("two")
				if _, err := b.Create(t.Context(), "log/2", []byte("2")); err != nil {
					t.Errorf("after the renewal: %v", err)
				}
				if body, err := b.Get(t.Context(), "log/2"); string(body) != "2" || err != nil {
					t.Errorf("read %q, %v", body, err)
				}
			})
		}
	}
}

// profile writes a shared configuration file with one line in it.
func profile(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte("[default]\n"+line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A store that refuses everything costs one look in ten seconds; a look that
// finds nothing forgets nothing; and without a refusal there is none.
func TestLooksAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		k := &keys{
			every: keysEvery, looked: time.Now(), found: aws.AnonymousCredentials{},
			look: func(context.Context) (aws.CredentialsProvider, error) { looks++; return nil, errors.New("no file") },
		}
		for i := range 600 { // a minute
			if i >= 300 {
				k.refuse()
			}
			time.Sleep(100 * time.Millisecond)
			if k.provider(t.Context()) == nil {
				t.Fatal("forgot what it had found")
			}
		}
		if want := 3; looks < want || looks > want+1 {
			t.Errorf("%d looks in 30 s of refusals, want %d", looks, want)
		}
	})
}
