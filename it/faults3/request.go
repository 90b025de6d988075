package faults3

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
)

// An Op is the kind of a request.
type Op string

// The kinds of requests.
const (
	Put    Op = "PUT"
	Get    Op = "GET"
	Head   Op = "HEAD"
	Delete Op = "DELETE"
	List   Op = "LIST"
	Ask    Op = "ASK"   // a question about the bucket
	Other  Op = "OTHER" // anything else

	DeleteMany Op = "DELETEMANY" // DeleteObjects
	Versions   Op = "VERSIONS"   // ListObjectVersions
	Upload     Op = "UPLOAD"     // anything about uploads in parts
)

// A request is one with its body read and its checksums checked.
type request struct {
	*http.Request
	op          Op
	bucket, key string
	header      http.Header // with the trailer's members
	raw         []byte      // the body as it came
	body        []byte
	chunked     bool
	checksum    string // x-amz-checksum-…, or ""
	fault       Fault  // that it meets
	err         error  // what is wrong with the body; its text is an S3 code
}

var (
	errBody   = errors.New("IncompleteBody")
	errDigest = errors.New("BadDigest")
)

// checksums are the hashes that a client may state, by the header's name.
var checksums = map[string]func() hash.Hash{
	"X-Amz-Checksum-Crc32":     func() hash.Hash { return crc32.NewIEEE() },
	"X-Amz-Checksum-Crc32c":    func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
	"X-Amz-Checksum-Crc64nvme": func() hash.Hash { return crc64.New(crc64.MakeTable(0x9A6C9329AC4BC9B5)) },
	"X-Amz-Checksum-Sha1":      sha1.New,
	"X-Amz-Checksum-Sha256":    sha256.New,
	"Content-Md5":              md5.New,
}

func parse(r *http.Request) *request {
	q := &request{Request: r, header: r.Header.Clone()}
	q.bucket, q.key, _ = strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	q.op = opOf(r, q.key)
	q.chunked = strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-")
	var err error
	q.raw, err = io.ReadAll(r.Body)
	switch {
	case err != nil:
		q.err = errBody
	case q.chunked:
		q.body, q.err = dechunk(bytes.NewReader(q.raw), q.header)
	default:
		q.body = q.raw
	}
	if q.err == nil {
		q.err = q.check()
	}
	return q
}

// accessKey returns who signed a request, "" for a request that is not signed
// in its header.
func accessKey(r *http.Request) string {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	id, _, _ := strings.Cut(credential, "/")
	return id
}

// conditional reports whether a request is a PUT that must find nothing there.
func (q *request) conditional() bool { return q.op == Put && q.header.Get("If-None-Match") == "*" }

func opOf(r *http.Request, key string) Op {
	query := r.URL.Query()
	switch {
	case query.Has("uploads") || query.Has("uploadId"):
		return Upload
	case query.Has("delete") && r.Method == http.MethodPost && key == "":
		return DeleteMany
	case query.Has("delete"):
		return Other
	case query.Has("versions") && r.Method == http.MethodGet && key == "":
		return Versions
	case key != "":
		switch op := Op(r.Method); op {
		case Put, Get, Head, Delete:
			return op
		}
		return Other
	case r.Method == http.MethodGet && query.Get("list-type") == "2" && !query.Has("delimiter"):
		return List
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return Ask
	}
	return Other
}

// check compares the body with every checksum that the request states.
func (q *request) check() error {
	for name, newHash := range checksums {
		want := q.header.Get(name)
		if want == "" {
			continue
		}
		if name != "Content-Md5" {
			q.checksum = strings.ToLower(name)
		}
		h := newHash()
		h.Write(q.body)
		if base64.StdEncoding.EncodeToString(h.Sum(nil)) != want {
			return errDigest
		}
	}
	if want := q.header.Get("X-Amz-Content-Sha256"); len(want) == 64 {
		if sum := sha256.Sum256(q.body); hex.EncodeToString(sum[:]) != want {
			return errDigest
		}
	}
	return nil
}

// dechunk reads an aws-chunked body: chunks that each begin with their size in
// hex, an empty one, and then a trailer, whose members go to header.
func dechunk(body io.Reader, header http.Header) ([]byte, error) {
	in := bufio.NewReader(body)
	var out bytes.Buffer
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, errBody
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 64)
		if err != nil {
			return nil, errBody
		}
		if n == 0 {
			return out.Bytes(), trailer(in, header)
		}
		if _, err := io.CopyN(&out, in, n); err != nil {
			return nil, errBody
		}
		if _, err := in.ReadString('\n'); err != nil {
			return nil, errBody
		}
	}
}

func trailer(in *bufio.Reader, header http.Header) error {
	members, err := textproto.NewReader(in).ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) {
		return errBody
	}
	for name, values := range members {
		header[name] = values
	}
	return nil
}

func etag(body []byte) string {
	sum := md5.Sum(body)
	return `"` + hex.EncodeToString(sum[:]) + `"`
}
