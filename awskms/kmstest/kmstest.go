// Package kmstest is a stand-in for AWS KMS, for tests: GetPublicKey and Sign,
// over HTTP, with real Ed25519 keys.
//
// It is stricter than KMS: a request that is not exactly as it should be fails
// the test, and gets the answer that KMS would give. It checks the signature of
// the request (Signature Version 4), X-Amz-Target, the members of the JSON body,
// kind and usage of the key, MessageType and the length of the message.
package kmstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Region is the region that requests must be signed for.
const Region = "eu-central-1"

// The credentials that requests must be signed with.
const (
	AccessKey = "AKIDEXAMPLE"
	SecretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

// A Key is what the server says of a key.
type Key struct {
	Spec       string // KeySpec
	Usage      string // KeyUsage
	Algorithms []string
	Public     crypto.PublicKey
	Private    ed25519.PrivateKey // nil: it does not sign
}

// Ed25519 returns a key that is as it should be.
func Ed25519(private ed25519.PrivateKey) Key {
	return Key{"ECC_NIST_EDWARDS25519", "SIGN_VERIFY", []string{"ED25519_SHA_512", "ED25519_PH_SHA_512"}, private.Public(), private}
}

// P256 returns a key of another kind.
func P256(t testing.TB) Key {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{"ECC_NIST_P256", "SIGN_VERIFY", []string{"ECDSA_SHA_256"}, key.Public(), nil}
}

// A Server is the stand-in.
type Server struct {
	URL string

	t        testing.TB
	mu       sync.Mutex
	keys     map[string]Key    // by id
	aliases  map[string]string // to ids
	faults   []Fault
	calls    []string
	tampered bool
}

// A Fault is an answer in the place of what was asked for.
type Fault struct {
	Status int
	Code   string // of KMS; "": the connection is cut without an answer
}

// What KMS answers when it is not well, or not willing.
var (
	Throttled = Fault{http.StatusBadRequest, "ThrottlingException"}
	Internal  = Fault{http.StatusInternalServerError, "KMSInternalException"}
	Busy      = Fault{http.StatusServiceUnavailable, "ServiceUnavailableException"}
	Denied    = Fault{http.StatusBadRequest, "AccessDeniedException"}
	Cut       = Fault{}
)

// New starts a server, and has the AWS SDK find its credentials and region and
// nothing else. The test ends it.
func New(t *testing.T, keys map[string]Key) *Server {
	t.Helper()
	s := &Server{t: t, keys: keys, aliases: make(map[string]string)}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": AccessKey, "AWS_SECRET_ACCESS_KEY": SecretKey, "AWS_SESSION_TOKEN": "", "AWS_REGION": Region,
		"AWS_PROFILE": "", "AWS_CONFIG_FILE": t.TempDir() + "/none", "AWS_SHARED_CREDENTIALS_FILE": t.TempDir() + "/none",
		"AWS_ENDPOINT_URL": "", "AWS_EC2_METADATA_DISABLED": "true",
	} {
		t.Setenv(name, value)
	}
	return s
}

// Alias lets an alias, with its "alias/", stand for a key.
func (s *Server) Alias(name, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aliases[name] = id
}

// Fail has the next requests fail, one for each fault.
func (s *Server) Fail(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

// Tamper has the server give signatures that are not by the key from now on.
func (s *Server) Tamper() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tampered = true
}

// Calls returns what was asked so far, one word a request: GetPublicKey or Sign.
// Those that failed are among them.
func (s *Server) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

// ARN returns what the server calls a key.
func ARN(id string) string { return "arn:aws:kms:" + Region + ":111122223333:key/" + id }

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Errorf("kms: body: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, complaint := range complaints(r, body) {
		s.t.Errorf("kms: %s", complaint)
	}
	operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "TrentService.")
	s.calls = append(s.calls, operation)
	if len(s.faults) > 0 {
		fault := s.faults[0]
		s.faults = s.faults[1:]
		answerFault(w, fault)
		return
	}
	switch operation {
	case "GetPublicKey":
		s.getPublicKey(w, body)
	case "Sign":
		s.sign(w, body)
	default:
		s.refuse(w, "UnknownOperationException", "it is asked for "+operation)
	}
}

// complaints says what of a request is not as AWS wants it.
func complaints(r *http.Request, body []byte) (all []string) {
	if r.Method != http.MethodPost || r.URL.Path != "/" || r.URL.RawQuery != "" {
		all = append(all, fmt.Sprintf("want POST /, not %s %s", r.Method, r.URL))
	}
	if got := r.Header.Get("Content-Type"); got != "application/x-amz-json-1.1" {
		all = append(all, "Content-Type is "+got)
	}
	if !strings.HasPrefix(r.Header.Get("X-Amz-Target"), "TrentService.") {
		all = append(all, "X-Amz-Target is "+r.Header.Get("X-Amz-Target"))
	}
	if err := checkSignature(r, body); err != nil {
		all = append(all, err.Error())
	}
	return all
}

func answerFault(w http.ResponseWriter, fault Fault) {
	if fault.Code == "" {
		panic(http.ErrAbortHandler)
	}
	answer(w, fault.Status, map[string]any{"__type": fault.Code, "message": "so the test\nwants it"})
}

// refuse answers a request that should not have been made.
func (s *Server) refuse(w http.ResponseWriter, code, why string) {
	s.t.Errorf("kms: %s", why)
	answer(w, http.StatusBadRequest, map[string]any{"__type": code, "message": why})
}

func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// members decodes a body that must have exactly the members that are named.
func (s *Server) members(body []byte, names ...string) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		s.t.Errorf("kms: body: %v", err)
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(all)); !slices.Equal(got, names) {
		s.t.Errorf("kms: the body has the members %v, want %v", got, names)
	}
	return all
}

// find returns the key that a KeyId names, by id, ARN or alias.
func (s *Server) find(w http.ResponseWriter, raw json.RawMessage) (id string, k Key, ok bool) {
	var name string
	if err := json.Unmarshal(raw, &name); err != nil {
		s.t.Errorf("kms: KeyId: %v", err)
	}
	id = strings.TrimPrefix(name, ARN(""))
	if target, isAlias := s.aliases[name]; isAlias {
		id = target
	}
	if k, ok = s.keys[id]; !ok {
		answer(w, http.StatusBadRequest, map[string]any{"__type": "NotFoundException", "message": "Key '" + name + "' does not exist"})
	}
	return id, k, ok
}

func (s *Server) getPublicKey(w http.ResponseWriter, body []byte) {
	id, k, ok := s.find(w, s.members(body, "KeyId")["KeyId"])
	if !ok {
		return
	}
	public, err := x509.MarshalPKIXPublicKey(k.Public)
	if err != nil {
		s.t.Errorf("kms: %v", err)
	}
	answer(w, http.StatusOK, map[string]any{
		"KeyId": ARN(id), "PublicKey": public, "KeySpec": k.Spec, "CustomerMasterKeySpec": k.Spec, "KeyUsage": k.Usage, "SigningAlgorithms": k.Algorithms,
	})
}

func (s *Server) sign(w http.ResponseWriter, body []byte) {
	all := s.members(body, "KeyId", "Message", "MessageType", "SigningAlgorithm")
	id, k, ok := s.find(w, all["KeyId"])
	if !ok {
		return
	}
	var message []byte
	err := json.Unmarshal(all["Message"], &message)
	switch {
	case err != nil:
		s.refuse(w, "ValidationException", "message: "+err.Error())
	case string(all["MessageType"]) != `"RAW"`:
		s.refuse(w, "ValidationException", "MessageType is "+string(all["MessageType"]))
	case string(all["SigningAlgorithm"]) != `"ED25519_SHA_512"`:
		s.refuse(w, "InvalidKeyUsageException", "SigningAlgorithm is "+string(all["SigningAlgorithm"]))
	case len(message) == 0 || len(message) > 4096:
		s.refuse(w, "ValidationException", fmt.Sprintf("the message has %d bytes", len(message)))
	case k.Private == nil:
		s.refuse(w, "InvalidKeyUsageException", id+" does not sign")
	default:
		signature := ed25519.Sign(k.Private, message)
		if s.tampered {
			signature[0] ^= 1
		}
		answer(w, http.StatusOK, map[string]any{"KeyId": ARN(id), "Signature": signature, "SigningAlgorithm": "ED25519_SHA_512"})
	}
}
