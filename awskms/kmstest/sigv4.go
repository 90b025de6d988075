package kmstest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

var authorization = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([^/]+)/([^/]+)/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$`)

// checkSignature checks Signature Version 4 of a POST to / without a query.
func checkSignature(r *http.Request, body []byte) error {
	m := authorization.FindStringSubmatch(r.Header.Get("Authorization"))
	if m == nil {
		return fmt.Errorf("authorization is not Signature Version 4: %q", r.Header.Get("Authorization"))
	}
	day, names, date := m[2], strings.Split(m[5], ";"), r.Header.Get("X-Amz-Date")
	switch {
	case m[1] != AccessKey || m[3] != Region || m[4] != "kms":
		return fmt.Errorf("signed with %s for %s in %s", m[1], m[4], m[3])
	case !strings.HasPrefix(date, day+"T"):
		return fmt.Errorf("signed on %s, sent on %s", day, date)
	case !slices.IsSorted(names) || !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-target") || !slices.Contains(names, "x-amz-date"):
		return fmt.Errorf("signed headers are %v", names)
	}
	if want := signature(r, body, day, date, names); want != m[6] {
		return fmt.Errorf("signature is %s, want %s", m[6], want)
	}
	return nil
}

func signature(r *http.Request, body []byte, day, date string, names []string) string {
	var headers strings.Builder
	for _, name := range names {
		fmt.Fprintf(&headers, "%s:%s\n", name, header(r, name, len(body)))
	}
	sum := sha256.Sum256(body)
	request := sha256.Sum256([]byte("POST\n/\n\n" + headers.String() + "\n" + strings.Join(names, ";") + "\n" + hex.EncodeToString(sum[:])))
	scope := day + "/" + Region + "/kms/aws4_request"
	key := []byte("AWS4" + SecretKey)
	for _, part := range strings.Split(scope, "/") {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+hex.EncodeToString(request[:])))
}

// header returns a header as it is signed. Go's server keeps two of them
// elsewhere.
func header(r *http.Request, name string, length int) string {
	switch name {
	case "host":
		return r.Host
	case "content-length":
		return fmt.Sprint(length)
	}
	return strings.Join(r.Header.Values(name), ",")
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
