package s3sink

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/ledgerlake/ledgerlake/archive"
)

var (
	// ErrNoBucket: the bucket is not there. Nothing is known about any key of
	// it; it is never reported as an absent object.
	ErrNoBucket = errors.New("bucket does not exist")
	// ErrDamaged: bytes arrived, and they are not the object: too few, too
	// many, or with another checksum than the store keeps for them.
	ErrDamaged = archive.ErrDamaged

	errStalled = errors.New("no answer in time")
)

// An Error is what a store answered, or that it did not answer. It matches
// the sentinel that a caller acts on: those of package archive, [ErrNoBucket]
// and [ErrDamaged]; where it matches none of them, trying again may help.
type Error struct {
	Op        string    // create, get, get tail, list, …
	Key       string    // below the prefix; of the whole bucket where Op is about that
	Status    int       // of HTTP; 0: no answer
	Code      string    // of S3, "" where there was none
	Message   string    // of S3, one line
	RequestID string    // what the store's operators ask for
	Time      time.Time // the store's clock, zero where it did not say

	kind  error // nil: none
	cause error // where there was no answer
}

// Error is one line: what was done, what follows from the answer, the answer.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Key != "" {
		b.WriteString(" " + e.Key)
	}
	b.WriteString(": ")
	if e.kind != nil {
		fmt.Fprintf(&b, "%v: ", e.kind)
	}
	if e.Status == 0 {
		fmt.Fprint(&b, oneLine(e.cause.Error()))
		return b.String()
	}
	fmt.Fprintf(&b, "%d %s", e.Status, e.Code)
	if e.Message != "" && e.Message != e.Code {
		fmt.Fprintf(&b, ": %s", e.Message)
	}
	if e.RequestID != "" {
		fmt.Fprintf(&b, " (request %s)", e.RequestID)
	}
	return b.String()
}

// Unwrap returns the sentinel and the cause.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.kind, e.cause}, func(err error) bool { return err == nil })
}

// failed makes an Error of what the SDK returned. A caller that gave up finds
// its context's error in it; an attempt that was given up has another one, or
// the caller would take a hung connection for its own wish to stop.
func failed(op, key string, err error) *Error {
	e := &Error{Op: op, Key: key}
	var answer *awshttp.ResponseError
	switch {
	case errors.Is(err, errStalled):
		e.cause = err
	case errors.As(err, &answer) && answer.HTTPStatusCode() != 0:
		e.readAnswer(answer, err)
		e.kind = kindOf(op, e.Status, e.Code)
	case strings.Contains(err.Error(), noCredentials):
		e.kind = archive.ErrDenied
		e.cause = fmt.Errorf("no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role: %w", withoutEnvelope(err))
	default:
		e.cause = withoutEnvelope(err)
	}
	return e
}

// noCredentials stands in the SDK's error for a request that could not be
// signed. It has no type of its own.
const noCredentials = "get credentials: "

func (e *Error) readAnswer(answer *awshttp.ResponseError, err error) {
	e.Status, e.RequestID = answer.HTTPStatusCode(), answer.ServiceRequestID()
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Message = oneLine(api.ErrorCode()), oneLine(api.ErrorMessage())
	}
	if answer.Response == nil {
		return
	}
	header := answer.Response.Header
	e.Time = storeTime(header)
	if region := header.Get("X-Amz-Bucket-Region"); region != "" && (e.Status == http.StatusMovedPermanently || e.Code == "AuthorizationHeaderMalformed") {
		e.Message = fmt.Sprintf("the bucket is in another region: set region=%s", oneLine(region))
	}
}

// deniedCodes mean a denial under another status: 400 on AWS, and 404 on
// versitygw for an access key that it does not know.
var deniedCodes = []string{"ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId", "XAdminUserNotFound"}

// kindOf is the table of what follows from an answer.
//
// A 404 means an absent object only where the store says NoSuchKey: the page
// of a proxy, or a wrong bucket, must not make a full archive look empty.
func kindOf(op string, status int, code string) error {
	switch {
	case code == "NoSuchBucket":
		return ErrNoBucket
	case code == "NoSuchKey" && status == http.StatusNotFound:
		return archive.ErrNotFound
	case status == http.StatusPreconditionFailed && writes(op):
		return archive.ErrExists
	case status == http.StatusConflict && writes(op):
		return archive.ErrConflict
	case status == http.StatusUnauthorized, status == http.StatusForbidden, slices.Contains(deniedCodes, code):
		return archive.ErrDenied
	}
	return nil
}

// writes reports whether an operation is a conditional write.
func writes(op string) bool { return op == opCreate || op == opSwap }

// Transient reports whether the same request may do better in a moment: the
// store is away, or slow, or something went wrong on the way.
func Transient(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if e.Code == "RequestTimeTooSkewed" {
		return true // the SDK has read the store's clock, and signs by it from now on
	}
	if e.kind != nil {
		return e.kind == ErrDamaged
	}
	if e.Status == http.StatusOK {
		return slices.Contains(transientCodes, e.Code)
	}
	return e.Status == 0 || e.Status >= 500 || e.Status == http.StatusRequestTimeout || e.Status == http.StatusTooManyRequests
}

// withoutEnvelope takes off what the SDK and net/http write around an error,
// which repeats operation, host and key.
func withoutEnvelope(err error) error {
	var operation *smithy.OperationError
	if errors.As(err, &operation) {
		err = operation.Err
	}
	var send *smithyhttp.RequestSendError
	if errors.As(err, &send) {
		err = send.Err
	}
	var transport *url.Error
	if errors.As(err, &transport) {
		err = transport.Err
	}
	return err
}

func storeTime(h http.Header) time.Time {
	t, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// oneLine keeps a store's words to one line of a sensible length.
func oneLine(s string) string {
	s = strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f }), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + "…"
	}
	return s
}
