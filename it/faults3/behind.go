package faults3

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
)

// hops are the headers that are about one connection only.
var hops = []string{"Connection", "Keep-Alive", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Proxy-Connection"}

// behind keeps the connections to stores behind. It asks for nothing that the
// client did not ask for, because the client's signature may cover it.
var behind = &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 64}

// errTorn ends the body of a request that is not sent to its end.
var errTorn = errors.New("torn to order")

// pass passes a request on, unless the fault forbids it, and writes down the
// answer. A store that does not answer is a bad gateway.
func (s *Server) pass(w http.ResponseWriter, q *request, f Fault) {
	if f.refuses() && !f.Torn {
		return
	}
	res, err := behind.RoundTrip(s.onward(q, f))
	if err != nil {
		refuse(w, http.StatusBadGateway, "BadGateway")
		return
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		refuse(w, http.StatusBadGateway, "BadGateway")
		return
	}
	for name, values := range res.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(res.StatusCode)
	w.Write(body)
}

// onward returns the request as the store behind gets it: the same, to the
// name of the host that was signed.
func (s *Server) onward(q *request, f Fault) *http.Request {
	to, err := url.Parse(s.opts.Behind)
	if err != nil {
		panic(err) // of the options
	}
	at := *q.URL
	at.Scheme, at.Host = to.Scheme, to.Host
	r := &http.Request{
		Method: q.Method, URL: &at, Host: q.Host, Header: q.Request.Header.Clone(),
		Body: io.NopCloser(bytes.NewReader(q.raw)), ContentLength: int64(len(q.raw)),
	}
	for _, name := range hops {
		r.Header.Del(name)
	}
	if f.Torn {
		r.Body = io.NopCloser(io.MultiReader(bytes.NewReader(q.raw[:len(q.raw)/2]), torn{}))
	}
	if len(q.raw) == 0 {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	return r.WithContext(q.Context())
}

// torn is where a body breaks off.
type torn struct{}

func (torn) Read([]byte) (int, error) { return 0, errTorn }
