package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/ledgerlake/ledgerlake/config"
)

// agent is who the tests are.
const agent = "ledgerlake-test/1"

// A guard stands in for a broker that speaks one SASL mechanism which kfake
// does not: it hears what the client says first, and lets it in or not.
type guard struct{ cluster *kfake.Cluster }

// newGuard starts a broker. check returns "" for who may enter, and else what
// the broker says; answer is what it says to those that it lets in.
func newGuard(t *testing.T, mechanism, answer string, check func(said []byte) string) *guard {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	g := &guard{cluster: cluster}
	cluster.ControlKey(int16(kmsg.SASLHandshake), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		response := r.ResponseKind().(*kmsg.SASLHandshakeResponse)
		if r.(*kmsg.SASLHandshakeRequest).Mechanism != mechanism {
			response.ErrorCode = kerr.UnsupportedSaslMechanism.Code
		}
		return response, nil, true
	})
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(r kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		said := r.(*kmsg.SASLAuthenticateRequest).SASLAuthBytes
		response := r.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		if fault := check(said); fault != "" {
			response.ErrorCode, response.ErrorMessage = kerr.SaslAuthenticationFailed.Code, &fault
			return response, nil, true
		}
		response.SASLAuthBytes = []byte(answer)
		return response, nil, true
	})
	return g
}

// options returns how to connect to the guard's broker.
func (g *guard) options(t *testing.T, s config.SASL) []kgo.Opt {
	t.Helper()
	opts, err := Connect(t.Context(), Connection{Brokers: g.cluster.ListenAddrs(), Kafka: &config.Kafka{ClientID: "test", SASL: s}, Agent: agent})
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// The token of a file is what the file holds when a connection is made, and
// extensions go with it. (What stands between is RFC 7628, section 3.1.)
func TestBearerTokenOfAFile(t *testing.T) {
	valid := "one"
	g := newGuard(t, "OAUTHBEARER", "", func(said []byte) string {
		if want := "n,,\x01auth=Bearer " + valid + "\x01logicalCluster=lkc-1\x01pool=a=b\x01\x01"; string(said) != want {
			return "invalid token"
		}
		return ""
	})
	file := filepath.Join(t.TempDir(), "token")
	fill := func(text string) {
		if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fill("one")
	token, err := config.NewFileSecret(file)
	if err != nil {
		t.Fatal(err)
	}
	opts := g.options(t, config.SASL{Mechanism: config.SASLOAuthBearer, Token: token, OAuth: config.OAuth{Extensions: []string{"pool=a=b", "logicalCluster=lkc-1"}}})
	if !letIn(t, opts) {
		t.Error("not let in with the first token")
	}
	valid = "two"
	if letIn(t, opts) {
		t.Error("let in with a token that is no longer valid")
	}
	fill("two")
	if !letIn(t, opts) {
		t.Error("not let in with the token that was written since")
	}
}

// Tokens of a service are asked for with id, secret and scopes, and used until
// shortly before they expire: connections share them. A secret that was
// replaced is used for the next.
func TestBearerTokensOfAService(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	fill := func(text string) {
		if err := os.WriteFile(secret, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var asked []url.Values
	lifetime, password := 3600, "hunter2"
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, given, _ := r.BasicAuth()
		_ = r.ParseForm()
		w.Header().Set("Content-Type", "application/json")
		if id != "ingest" || given != password {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error": "invalid_client", "error_description": "you sent %s"}`, given)
			return
		}
		asked = append(asked, r.PostForm)
		_, _ = fmt.Fprintf(w, `{"access_token": "token-%d", "token_type": "Bearer", "expires_in": %d}`, len(asked), lifetime)
	}))
	defer service.Close()
	g := newGuard(t, "OAUTHBEARER", "", func(said []byte) string {
		if !strings.Contains(string(said), fmt.Sprintf("auth=Bearer token-%d\x01", len(asked))) {
			return "not the newest token"
		}
		return ""
	})
	fill("hunter2")
	s := config.SASL{Mechanism: config.SASLOAuthBearer, OAuth: config.OAuth{TokenURL: service.URL, ClientID: "ingest", Scopes: []string{"kafka", "audit"}}}
	s.OAuth.ClientSecret, _ = config.NewFileSecret(secret)
	opts := g.options(t, s)
	for range 3 {
		if !letIn(t, opts) {
			t.Fatal("not let in")
		}
	}
	if len(asked) != 1 || asked[0].Get("grant_type") != "client_credentials" || asked[0].Get("scope") != "kafka audit" {
		t.Errorf("the service was asked %v", asked)
	}

	// A token that expires within the margin is no token for the next connection.
	lifetime, asked = int(tokenEarly/time.Second)-1, nil
	opts = g.options(t, s)
	for range 2 {
		if !letIn(t, opts) {
			t.Fatal("not let in")
		}
	}
	if len(asked) != 2 {
		t.Errorf("the service was asked %d times for tokens that were about to expire, want 2", len(asked))
	}

	password = "hunter3"
	_, err := fromService(&s.OAuth)()
	if err == nil || !strings.Contains(err.Error(), "401 Unauthorized invalid_client") || strings.Contains(err.Error(), "hunter") {
		t.Errorf("refused by the service: %v", err)
	}
	fill("hunter3")
	if !letIn(t, opts) {
		t.Error("not let in after the secret was replaced")
	}
}

// What goes to Amazon MSK is a request that a second implementation, the AWS
// SDK's, signs alike, by the credentials that lie in the file at the time; and
// the region is that of the broker's name, or AWS_REGION.
func TestIAM(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	fill := func(secret string) {
		body := "[default]\naws_access_key_id = id\naws_secret_access_key = " + secret + "\naws_session_token = session\n"
		if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"AWS_SHARED_CREDENTIALS_FILE": file, "AWS_CONFIG_FILE": "none", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_PROFILE": "", "AWS_REGION": "eu-west-1",
	} {
		t.Setenv(name, value)
	}
	valid := "one"
	g := newGuard(t, "AWS_MSK_IAM", `{"version":"2020_10_22","request-id":"r"}`, func(said []byte) string { return checkIAM(t, said, valid) })
	fill("one")
	opts := g.options(t, config.SASL{Mechanism: config.SASLAWSMSKIAM})
	if !letIn(t, opts) {
		t.Error("not let in")
	}
	valid = "two"
	if letIn(t, opts) {
		t.Error("let in with a key that is no longer valid")
	}
	fill("two")
	if !letIn(t, opts) {
		t.Error("not let in with the key that was written since")
	}

	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	s := Connection{Brokers: []string{"b-1.audit.abc.c2.kafka.eu-central-1.amazonaws.com:9098"}, Kafka: &config.Kafka{SASL: config.SASL{Mechanism: config.SASLAWSMSKIAM}}}
	if _, err := Connect(t.Context(), s); err != nil {
		t.Error(err)
	}
	s.Brokers = append(s.Brokers, "kafka.example:9098")
	s.Origins = config.Origins{"kafka.sasl.mechanism": "flag --kafka.sasl.mechanism"}
	_, err := Connect(t.Context(), s)
	want := `kafka.sasl.mechanism (flag --kafka.sasl.mechanism): cannot determine the region in "kafka.example": want brokers of Amazon MSK, or AWS_REGION in the environment`
	var fault *config.Error
	if !errors.As(err, &fault) || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

// checkIAM returns what is wrong with the first message of AWS_MSK_IAM.
func checkIAM(t *testing.T, said []byte, secret string) string {
	var m map[string]string
	if err := json.Unmarshal(said, &m); err != nil {
		return err.Error()
	}
	at, err := time.Parse("20060102T150405Z", m["x-amz-date"])
	if err != nil || time.Since(at).Abs() > time.Minute || m["version"] != "2020_10_22" || m["host"] != "127.0.0.1" || !strings.HasPrefix(m["user-agent"], agent) {
		return "strange message " + string(said)
	}
	request, err := http.NewRequest(http.MethodGet, "https://"+m["host"]+"/?Action=kafka-cluster%3AConnect&X-Amz-Expires=900", nil)
	if err != nil {
		t.Fatal(err)
	}
	const emptyBody = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	keys := aws.Credentials{AccessKeyID: "id", SecretAccessKey: secret, SessionToken: "session"}
	signed, _, err := v4.NewSigner().PresignHTTP(t.Context(), keys, request, emptyBody, "kafka-cluster", "eu-west-1", at)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(signed)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range u.Query() {
		if got := m[strings.ToLower(name)]; got != values[0] {
			return fmt.Sprintf("%s is %q, want %q", name, got, values[0])
		}
	}
	return ""
}

// A password that was replaced in its file is the one for the next connection.
func TestPasswordOfAFile(t *testing.T) {
	for _, mechanism := range []string{config.SASLPlain, config.SASLScram256, config.SASLScram512} {
		file := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		password, err := config.NewFileSecret(file)
		if err != nil {
			t.Fatal(err)
		}
		cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser(strings.ToUpper(mechanism), "u", "new"))
		if err != nil {
			t.Fatal(err)
		}
		s := Connection{Brokers: cluster.ListenAddrs(), Kafka: &config.Kafka{ClientID: "test", SASL: config.SASL{Mechanism: mechanism, User: "u", Password: password}}}
		opts, err := Connect(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if letIn(t, opts) {
			t.Errorf("%s: let in with the old password", mechanism)
		}
		if err := os.WriteFile(file, []byte("new"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !letIn(t, opts) {
			t.Errorf("%s: not let in with the new password", mechanism)
		}
		cluster.Close()
	}
}
